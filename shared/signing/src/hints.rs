//! Guesses at what went wrong, each tried before it is said.

use crate::Timestamp;
use crate::encoding::{Compare, Encoding};
use crate::reason::Reason;
use crate::request::{Candidate, Headers, Request};
use crate::scheme::{Scheme, SecretEncoding, SecretRule, SignatureRule};
use crate::secret::Secret;
use crate::template::Piece;
use crate::verify::verify;
use crate::view::View;

pub(crate) fn hints(
    scheme: &Scheme,
    request: &Request<'_>,
    candidates: &[Candidate<'_>],
    now: Timestamp,
    reason: &Reason,
) -> Vec<String> {
    let detective = Detective {
        scheme,
        request,
        candidates,
        now,
    };
    match reason {
        Reason::Mismatch | Reason::MalformedSignature => detective.mismatch(),
        Reason::MissingSignature => detective.missing_signature(),
        Reason::Stale => vec![
            "the request was recorded long ago or the clocks differ: compare the skew with the window, and use --now to judge it at the time it was sent".into(),
        ],
        Reason::Future => vec!["the clock of the receiver is behind, or the sender's is ahead".into()],
        Reason::CertificateNeeded => vec![
            "put the signing certificate into the secret as {\"cert_pem\": …}".into(),
        ],
        Reason::HashMismatch(_) => detective.mismatch(),
        _ => Vec::new(),
    }
}

struct Detective<'a> {
    scheme: &'a Scheme,
    request: &'a Request<'a>,
    candidates: &'a [Candidate<'a>],
    now: Timestamp,
}

impl Detective<'_> {
    /// Whether the request would verify if it were `request` under `scheme`.
    fn would(&self, scheme: &Scheme, request: &Request<'_>) -> bool {
        match verify(scheme, request, self.candidates, self.now, None) {
            Ok(_) => true,
            Err(rejection) => matches!(rejection.reason, Reason::Stale | Reason::Future),
        }
    }

    fn mismatch(&self) -> Vec<String> {
        let mut hints = Vec::new();
        self.try_bodies(&mut hints);
        self.try_urls(&mut hints);
        self.try_secrets(&mut hints);
        self.try_writings(&mut hints);
        if hints.is_empty() && self.scheme.signature.is_some() {
            hints.push("the secret belongs to another endpoint or environment, or something changed the body on its way (compare its SHA-256 with the sender's)".into());
        }
        hints
    }

    fn try_bodies(&self, hints: &mut Vec<String>) {
        let body = self.request.body;
        let mut variants: Vec<(Vec<u8>, &str)> = vec![
            (
                [body, b"\n"].concat(),
                "a line feed is added at its end: something strips it",
            ),
            (
                [body, b"\r\n"].concat(),
                "CR LF is added at its end: something strips it",
            ),
        ];
        let trimmed = body.trim_ascii_end();
        if trimmed.len() != body.len() {
            variants.push((
                trimmed.to_vec(),
                "blanks at its end are removed: something adds them",
            ));
        }
        if let Ok(text) = std::str::from_utf8(body) {
            variants.push((
                text.replace("\r\n", "\n").into_bytes(),
                "CR LF becomes LF: something changes line ends",
            ));
            variants.push((
                text.replace('\n', "\r\n").into_bytes(),
                "LF becomes CR LF: something changes line ends",
            ));
        }
        if let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) {
            variants.push((
                json.to_string().into_bytes(),
                "it is written without blanks: something parses and rewrites it",
            ));
            if let Ok(pretty) = serde_json::to_vec_pretty(&json) {
                variants.push((pretty, "it is indented: something parses and rewrites it"));
            }
        }
        variants.push((
            crate::step::body::ascii(body),
            "characters outside ASCII are escaped: something decodes them",
        ));
        for (variant, what) in variants {
            if variant == body {
                continue;
            }
            let request = Request {
                body: &variant,
                decoded_body: None,
                ..*self.request
            };
            if self.would(self.scheme, &request) {
                hints.push(format!("the signature fits the body if {what}"));
                return;
            }
        }
    }

    fn try_urls(&self, hints: &mut Vec<String>) {
        let signs_url = self
            .scheme
            .jwt
            .as_ref()
            .is_some_and(|rule| rule.url_hash.is_some())
            || self.scheme.signature.as_ref().is_some_and(|rule| {
                rule.step.is_some()
                    || rule
                        .content
                        .iter()
                        .any(|template| template.pieces().contains(&Piece::Url))
            });
        if !signs_url {
            return;
        }
        let url = self.request.url;
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let mut variants = vec![
            url.replacen("http://", "https://", 1),
            url.replacen("https://", "http://", 1),
            path.to_owned(),
        ];
        variants.push(format!("{path}/"));
        variants.push(path.trim_end_matches('/').to_owned());
        variants.push(format!("{}?{query}", path.trim_end_matches('/')));
        for variant in variants {
            let request = Request {
                url: &variant,
                ..*self.request
            };
            if variant != url && self.would(self.scheme, &request) {
                hints.push(format!("the signature fits the URL {}: set the public URL of the source to what the provider calls", without_query(&variant)));
                return;
            }
        }
        hints.push("this scheme signs the URL: check that it is the one configured with the provider, letter for letter".into());
    }

    fn try_secrets(&self, hints: &mut Vec<String>) {
        let encodings = [
            SecretEncoding::Utf8,
            SecretEncoding::Base64,
            SecretEncoding::Hex,
        ];
        let public = matches!(
            self.scheme.secret.encoding,
            SecretEncoding::PublicKey | SecretEncoding::Jwk
        );
        for encoding in encodings.into_iter().filter(|_| !public) {
            for prefix in [
                None,
                self.scheme.secret.prefix.clone(),
                Some("whsec_".to_owned()),
            ] {
                let secret = SecretRule {
                    encoding,
                    prefix,
                    prefix_required: false,
                    without_prefix: None,
                    ..self.scheme.secret.clone()
                };
                let scheme = Scheme {
                    secret,
                    ..self.scheme.clone()
                };
                if self.would(&scheme, self.request) {
                    hints.push("the signature fits if the secret is decoded another way: its prefix or encoding is not what this kind uses".into());
                    return;
                }
            }
        }
        for candidate in self.candidates {
            let trimmed = candidate.secret.expose().trim();
            let Ok(secret) = Secret::new(trimmed) else {
                continue;
            };
            let changed = trimmed.len() != candidate.secret.expose().len();
            let trimmed = [Candidate {
                label: candidate.label,
                secret: &secret,
            }];
            if changed && verify(self.scheme, self.request, &trimmed, self.now, None).is_ok() {
                hints.push(format!(
                    "the secret {} has blanks around it",
                    candidate.label
                ));
            }
        }
    }

    /// Upper-case hex, a missing prefix, a prefix in another case.
    fn try_writings(&self, hints: &mut Vec<String>) {
        let Some(rule) = &self.scheme.signature else {
            return;
        };
        let bytes = SignatureRule {
            compare: Compare::Bytes,
            ..rule.clone()
        };
        let scheme = Scheme {
            signature: Some(bytes),
            ..self.scheme.clone()
        };
        if rule.compare == Compare::Text && self.would(&scheme, self.request) {
            hints.push(match rule.encoding {
                Encoding::Hex => "the signature is right but written in upper-case hex, which the provider never does".into(),
                _ => "the signature is right but its base64 padding is missing, which the provider never does".into(),
            });
            return;
        }
        if rule.prefix.is_empty() {
            return;
        }
        let view = View::new(self.scheme, self.request);
        let Some(value) = rule.from.iter().flat_map(|at| view.texts(at)).next() else {
            return;
        };
        let bare = SignatureRule {
            prefix: String::new(),
            ..rule.clone()
        };
        let scheme = Scheme {
            signature: Some(bare),
            ..self.scheme.clone()
        };
        if self.would(&scheme, self.request) {
            hints.push(format!(
                "the signature is right but `{}` is missing before it",
                rule.prefix
            ));
        } else if !value.starts_with(&rule.prefix) {
            hints.push(format!(
                "the signature must start with `{}`, exactly so",
                rule.prefix
            ));
        }
    }

    fn missing_signature(&self) -> Vec<String> {
        let headers: &Headers = self.request.headers;
        let mut hints = vec![];
        let signs = headers.iter().map(|(name, _)| name).filter(|name| {
            let name = name.to_ascii_lowercase();
            name.contains("signature") || name.contains("hmac") || name.contains("token")
        });
        for name in signs.take(3) {
            hints.push(format!("the request has a header {name}, which this kind does not read: is it another kind?"));
        }
        if hints.is_empty() {
            hints.push("nothing in the request looks like a signature: is a secret set on the provider's side?".into());
        }
        hints
    }
}

/// Queries may hold tokens, so hints leave them out.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}
