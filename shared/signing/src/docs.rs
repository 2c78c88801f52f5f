//! The table of built-in kinds, written from the schemes themselves.

use std::fmt::Write as _;

use crate::handshake::HandshakeRule;
use crate::scheme::{
    Confidence, Format, JwtRule, Scheme, SecretEncoding, SignatureRule, Step, TimestampRule, Unit,
};

/// docs/providers.md as it has to be.
#[must_use]
pub fn providers_table() -> String {
    let mut text = HEAD.replace("{count}", &crate::kinds().count().to_string());
    text.push_str(
        "| kind | name | algorithm | signature | signed content | window | event id | told apart by | handshakes | facts: signature / delivery |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for kind in crate::kinds() {
        if let Some(scheme) = crate::builtin(kind) {
            let cells = [
                format!("`{kind}`"),
                scheme.name.clone(),
                algorithm(scheme),
                signature(scheme),
                content(scheme),
                window(scheme),
                id(scheme),
                told_apart_by(scheme),
                handshakes(scheme),
                format!(
                    "{} / {}",
                    confidence(scheme.facts.signature),
                    confidence(scheme.facts.delivery)
                ),
            ];
            let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            writeln!(text, "| {} |", cells.join(" | ")).expect("writing to a String never fails");
        }
    }
    text.push_str("\n## Worth knowing\n\n");
    for kind in crate::kinds() {
        if let Some(note) = crate::builtin(kind).map(|scheme| &scheme.facts.note)
            && !note.is_empty()
        {
            writeln!(text, "- `{kind}`: {note}").expect("writing to a String never fails");
        }
    }
    text.push_str(TAIL);
    text
}

const HEAD: &str = "# Providers

This page is written from the code: `HOOKSTEAD_UPDATE_DOCS=1 cargo test -p hookstead-signing` \
brings it up to date, and a test fails while it is not.

There are {count} built-in kinds. Each is one file in `shared/signing/schemes/`, in the format that \
[schemes.md](schemes.md) explains, so any of them can be the start of a scheme of your own.

How to read the table:

- **signature**: where it is and how it is written. Text comparison means that the encoded text \
must be the same, so upper-case hex and missing padding are refused; decoded means that the bytes \
behind it are compared.
- **window**: the largest accepted age and lead of the signed time. It is the one of the provider's \
own library or documentation where there is one, so some kinds have none; a source can set its own.
- **told apart by**: what makes two arrivals the same event. `signed text` is the SHA-256 of the \
signed text, which carries the time of sending: it recognises a repeat of the very same request, \
not a retry that was signed again. `nothing` means that every arrival is an event of its own: a \
hash of the body would take two different events with equal bodies for one.
- **facts**: where they come from, first those of the signature, then those of ids, times and \
handshakes. *Not confirmed* facts were not checked against the provider's documentation: try them \
with a test delivery before you rely on them.

";

const TAIL: &str = "
## Left out, and limits

- `mollie-classic` is no kind. Its requests are an unsigned form with an id, and the receiver is \
meant to fetch the object; there is nothing to verify.
- Certificates (`paypal`, `aws-sns`) are read from the secret, `{\"cert_pem\": …}` beside the member \
the kind needs. The URL a request names is held against the provider's own hosts, but nothing is \
fetched yet, and the certificate's chain, dates and name are not checked: whoever puts a certificate \
into the secret vouches for it.
- Keys published as a set (`plaid`, `fal-ai`) are read from the secret as a JSON web key or a set of \
them. Fetching a new one by its id is not done yet.
- Pings that look like events (`github`, `intercom`, `pagerduty`) are stored as events.
- A delivery that carries several events is one event here. It is told apart by all the ids in it.
- `microsoft-graph` rich notifications carry further tokens, which are not checked.
- `mailgun` signs a timestamp and a token only, and `adyen` eight fields of each item: a change \
elsewhere in the body cannot be seen. Tokens and credentials (`gitlab`, `telegram`, `postmark` and \
their like) vouch for the sender and for nothing in the body.
";

fn algorithm(scheme: &Scheme) -> String {
    if let Some(rule) = &scheme.signature {
        return match rule.step {
            Some(Step::Twilio) => "HMAC-SHA1, or HMAC-SHA256 as a header says".to_owned(),
            Some(Step::AwsSns | Step::Paypal) => "RSA-SHA256 or RSA-SHA1".to_owned(),
            _ => rule.algorithm.label().to_owned(),
        };
    }
    match (&scheme.jwt, &scheme.token) {
        (Some(rule), _) => format!("JWT {}", rule.algorithms.join(", ")),
        (None, Some(_)) => "fixed token".to_owned(),
        (None, None) => "basic credentials".to_owned(),
    }
}

fn signature(scheme: &Scheme) -> String {
    if let Some(rule) = &scheme.signature {
        let from: Vec<_> = rule.from.iter().map(|at| format!("`{at}`")).collect();
        let each = rule.each.as_ref();
        let each = each.map_or_else(String::new, |path| format!(" in each of `{path}`"));
        return format!("{}{each}, {}", from.join(", "), written(rule));
    }
    if let Some(rule) = &scheme.jwt {
        return format!("`{}{}`", rule.from, word(&rule.prefix));
    }
    if let Some(rule) = &scheme.token {
        let from: Vec<_> = rule.from.iter().map(|at| format!("`{at}`")).collect();
        let each = rule.each.as_ref();
        let each = each.map_or_else(String::new, |path| format!(" in each of `{path}`"));
        return format!("{}{}{each}", from.join(", "), word(&rule.prefix));
    }
    let from = scheme.basic.as_ref().map(|rule| rule.from.to_string());
    format!("`{}`", from.unwrap_or_default())
}

fn word(prefix: &str) -> String {
    if prefix.is_empty() {
        String::new()
    } else {
        format!(" after {}", prefix.trim())
    }
}

fn written(rule: &SignatureRule) -> String {
    let encoding = match rule.encoding {
        crate::Encoding::Hex => "hex",
        crate::Encoding::Base64 => "base64",
        crate::Encoding::Base64url => "base64url",
    };
    let key = rule.key.as_deref().unwrap_or("v1");
    let shape = match rule.format {
        Format::Single if rule.prefix.is_empty() => String::new(),
        Format::Single | Format::List if !rule.prefix.is_empty() => {
            format!(" after `{}`", rule.prefix)
        }
        Format::Single | Format::List => String::new(),
        Format::Versioned => format!(" in a list as `{key},…`"),
        Format::Pairs => format!(" as `{key}=…`"),
        Format::Groups => format!(" as `{key}=…` in groups"),
        Format::Positional => " after the time".to_owned(),
    };
    let compared = match (rule.algorithm.public(), rule.compare) {
        (Some(_), _) => "public key",
        (None, crate::Compare::Text) => "text",
        (None, crate::Compare::Bytes) => "decoded",
    };
    format!("{encoding}{shape} ({compared})")
}

fn content(scheme: &Scheme) -> String {
    if let Some(rule) = &scheme.signature {
        let own = match rule.step {
            Some(Step::Twilio) => Some(
                "URL with and without port, then the sorted form fields, or the URL alone with the body's hash in its query",
            ),
            Some(Step::Braintree) => {
                Some("`{form:bt_payload}`, with or without a line feed behind it")
            }
            Some(Step::AwsSns) => Some("name and value of the message's fields, a line each"),
            Some(Step::Paypal) | None => None,
        };
        if let Some(own) = own {
            return own.to_owned();
        }
        let texts = rule.content.iter().chain(&rule.content_without_timestamp);
        let texts: Vec<_> = texts
            .map(|text| format!("`{}`", text.as_str().replace('\n', "\\n")))
            .collect();
        return texts.join(" or ");
    }
    scheme
        .jwt
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), claims)
}

fn claims(rule: &JwtRule) -> String {
    let mut parts = Vec::new();
    if let Some(issuer) = &rule.issuer {
        parts.push(format!("`iss` = {issuer}"));
    }
    if let Some(member) = &rule.issuer_from_secret {
        parts.push(format!("`iss` = `{member}` of the secret"));
    }
    for (claim, what) in [(&rule.body_hash, "body"), (&rule.url_hash, "URL")] {
        if let Some(claim) = claim {
            parts.push(format!("`{}` = SHA-256 of the {what}", claim.claim));
        }
    }
    format!("claims: {}", parts.join(", "))
}

fn window(scheme: &Scheme) -> String {
    let Some(rule) = &scheme.timestamp else {
        return match &scheme.jwt {
            Some(rule) => format!("`exp` and `nbf`, {} s of leeway", rule.leeway_s),
            None => "no time is signed".to_owned(),
        };
    };
    let unit = match rule.unit {
        Unit::UnixS => "s",
        Unit::UnixMs => "ms",
        Unit::Iso8601 => "ISO 8601",
    };
    format!("{} (`{}` in {unit})", bounds(rule), rule.from)
}

fn bounds(rule: &TimestampRule) -> String {
    match (rule.past_s.seconds(), rule.future_s.seconds()) {
        (None, None) => "none".to_owned(),
        (Some(past), None) => format!("{past} s old"),
        (None, Some(future)) => format!("{future} s ahead"),
        (Some(past), Some(future)) if past == future => format!("{past} s both ways"),
        (Some(past), Some(future)) => format!("{past} s old, {future} s ahead"),
    }
}

fn id(scheme: &Scheme) -> String {
    let id = scheme.event.id.as_ref();
    id.map_or_else(|| "none".to_owned(), |rule| format!("`{rule}`"))
}

fn told_apart_by(scheme: &Scheme) -> String {
    match (&scheme.event.dedupe, &scheme.event.id) {
        (Some(rule), _) => format!("`{rule}`"),
        (None, Some(_)) => "event id".to_owned(),
        (None, None) if scheme.signs_time() => "signed text".to_owned(),
        (None, None) => "nothing".to_owned(),
    }
}

fn handshakes(scheme: &Scheme) -> String {
    let words: Vec<_> = scheme.handshake.iter().map(describe).collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join("; ")
    }
}

fn describe(rule: &HandshakeRule) -> String {
    match rule {
        HandshakeRule::QueryEcho {
            method,
            challenge,
            verify_token: Some(token),
        } => format!("{method} with `{challenge}`, echoed when `{token}` is right"),
        HandshakeRule::QueryEcho {
            method, challenge, ..
        } => format!("{method} with `{challenge}`, echoed"),
        HandshakeRule::QueryHmac { challenge, .. } => {
            format!("GET with `{challenge}`, answered with its HMAC")
        }
        HandshakeRule::Braintree => "GET with `bt_challenge`, answered with its HMAC".to_owned(),
        HandshakeRule::SecretHeader { header } => {
            format!("header `{header}` hands over the secret, echoed")
        }
        HandshakeRule::HeaderToJson { method, header, .. } => {
            format!("verified {method} with header `{header}`, echoed as JSON")
        }
        HandshakeRule::BodyEcho { challenge, .. } => format!("verified, `{challenge}` echoed"),
        HandshakeRule::Zoom => "verified URL validation, answered with an HMAC".to_owned(),
        HandshakeRule::Reply {
            status,
            empty_list: Some(path),
            ..
        } => format!("verified with an empty `{path}`, answered {status}"),
        HandshakeRule::Reply { status, .. } => format!("verified ping, answered {status}"),
        HandshakeRule::FormPing { field } => format!("unsigned form with `{field}` alone"),
        HandshakeRule::FixedKey { key } => format!("test request signed with `{key}`"),
        HandshakeRule::SecretInBody { at } => format!("`{at}` hands over the secret"),
        HandshakeRule::SnsConfirmation => {
            "verified subscription confirmation, URL handed to the caller".to_owned()
        }
        HandshakeRule::CloudEventsOptions => "OPTIONS, origin allowed".to_owned(),
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::OfficialSdk => "official library",
        Confidence::OfficialDocs => "official docs",
        Confidence::ThirdParty => "third party",
        Confidence::Unverified => "not confirmed",
    }
}

/// What to put into the secret of a kind, in words.
#[must_use]
pub fn secret_shape(scheme: &Scheme) -> String {
    let members: Vec<String> = scheme
        .signature
        .iter()
        .flat_map(|rule| rule.keys.iter().cloned())
        .chain(scheme.secret.member.clone())
        .chain(
            scheme
                .jwt
                .iter()
                .filter_map(|rule| rule.issuer_from_secret.clone()),
        )
        .collect();
    let text = match scheme.secret.encoding {
        _ if scheme.basic.is_some() => "user:password",
        SecretEncoding::Utf8 => "the secret as text",
        SecretEncoding::Base64 => "the secret in base64",
        SecretEncoding::Hex => "the secret in hex",
        SecretEncoding::PublicKey => "the public key: PEM, base64 or hex",
        SecretEncoding::Jwk => "the public key as a JSON web key",
    };
    let prefix = scheme.secret.prefix.as_ref();
    let prefix = prefix.map_or_else(String::new, |prefix| format!(", starting with {prefix}"));
    if members.is_empty() {
        format!("{text}{prefix}")
    } else {
        format!(
            "{text}{prefix}, or a JSON object with {}",
            members.join(" and ")
        )
    }
}
