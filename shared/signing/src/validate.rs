//! Checking a scheme before it is used.

use thiserror::Error;

use crate::json::JsonPath;
use crate::location::{Location, ValueRule};
use crate::scheme::{Format, Scheme, SecretEncoding, SignatureRule, Step};
use crate::template::Piece;

/// Most signatures a scheme may allow: one provider sends up to a hundred.
const MAX_MAX_SIGNATURES: usize = 100;

/// A scheme that cannot be used, with every problem it has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the scheme is not usable: {}", .problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; "))]
pub struct SchemeError {
    /// All problems that were found.
    pub problems: Vec<Problem>,
}

/// One problem of a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable code.
    pub code: &'static str,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl SchemeError {
    pub(crate) fn syntax(message: &str) -> Self {
        let problem = Problem {
            code: "scheme_syntax",
            message: message.trim().to_owned(),
        };
        Self {
            problems: vec![problem],
        }
    }

    /// The code of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problems
            .first()
            .map_or("scheme_syntax", |problem| problem.code)
    }
}

impl Scheme {
    /// Checks what the grammar alone cannot.
    ///
    /// # Errors
    ///
    /// [`SchemeError`] with every problem at once.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let mut found = Problems(Vec::new());
        if self.name.trim().is_empty() {
            found.add("scheme_name", "`name` is empty");
        }
        let methods = [
            self.signature.is_some(),
            self.token.is_some(),
            self.basic.is_some(),
            self.jwt.is_some(),
        ];
        if methods.iter().filter(|set| **set).count() != 1 {
            found.add(
                "scheme_method",
                "exactly one of [signature], [token], [basic] and [jwt] must be given",
            );
        }
        if let Some(rule) = &self.signature {
            self.check_signature(rule, &mut found);
        }
        if let Some(rule) = &self.token
            && rule.from.is_empty()
        {
            found.add("scheme_token_from", "[token] needs `from`");
        }
        self.check_jwt(&mut found);
        self.check_paths(&mut found);
        if self.timestamp.is_some() && self.signature.is_none() && self.jwt.is_none() {
            found.add(
                "scheme_timestamp",
                "[timestamp] needs [signature] or [jwt]: nothing else signs a time",
            );
        }
        if found.0.is_empty() {
            Ok(())
        } else {
            Err(SchemeError { problems: found.0 })
        }
    }

    /// Whether the signed text carries the time, so that no two sends have the same text.
    pub(crate) fn signs_time(&self) -> bool {
        let Some(stamp) = &self.timestamp else {
            return false;
        };
        let Some(rule) = &self.signature else {
            return self.jwt.is_some();
        };
        let in_text = |piece: &Piece| matches!(piece, Piece::Ts | Piece::CanonicalRequest);
        let in_body = matches!(stamp.from, Location::Body(_));
        rule.content.iter().any(|template| {
            template.pieces().iter().any(in_text) || (in_body && template.covers_body())
        })
    }

    fn check_signature(&self, rule: &SignatureRule, found: &mut Problems) {
        if rule.from.is_empty() {
            found.add(
                "scheme_signature_from",
                "[signature] needs `from`, the place of the signature",
            );
        }
        if rule.content.is_empty()
            && !matches!(
                rule.step,
                Some(Step::Twilio | Step::Braintree | Step::AwsSns)
            )
        {
            found.add(
                "scheme_content",
                "[signature] needs `content`, for example \"{ts}.{body}\"",
            );
        }
        if rule.max == 0 || rule.max > MAX_MAX_SIGNATURES {
            found.add("scheme_max", "`max` must be between 1 and 100");
        }
        if rule.separator.as_deref() == Some("") {
            found.add("scheme_separator", "`separator` is empty");
        }
        if !rule.keys.is_empty() && rule.keys.len() != rule.from.len() {
            found.add(
                "scheme_keys",
                "`keys` must name one member for each place of `from`",
            );
        }
        self.check_time_is_signed(rule, found);
        let public_key = matches!(
            self.secret.encoding,
            SecretEncoding::PublicKey | SecretEncoding::Jwk
        );
        if rule.algorithm.public().is_some() != public_key {
            found.add("scheme_secret_encoding", "public-key algorithms need `secret.encoding` = \"public-key\" or \"jwk\", and only they do");
        }
        if let Some(path) = &rule.each
            && !path.has_wildcard()
        {
            found.add("scheme_each", "`each` needs a [*] in its path");
        }
    }

    fn check_time_is_signed(&self, rule: &SignatureRule, found: &mut Problems) {
        let uses_ts = rule
            .content
            .iter()
            .any(|template| template.pieces().contains(&Piece::Ts));
        if uses_ts && self.timestamp.is_none() {
            found.add(
                "scheme_timestamp_missing",
                "`content` uses {ts}, so [timestamp] must say where it is",
            );
        }
        let unsigned = self.timestamp.is_some()
            && !self.signs_time()
            && rule.step.is_none()
            && rule.each.is_none();
        let template_reads_it = self.timestamp.as_ref().is_some_and(|stamp| {
            rule.content
                .iter()
                .flat_map(|template| template.pieces())
                .any(|piece| matches!(piece, Piece::Value { at, .. } if *at == stamp.from))
        });
        if unsigned && !template_reads_it {
            found.add(
                "scheme_timestamp_unsigned",
                "[timestamp] is not part of `content`: an unsigned time proves nothing",
            );
        }
        let keyed = matches!(
            rule.format,
            Format::Pairs | Format::Groups | Format::Positional
        );
        let in_signature = self
            .timestamp
            .as_ref()
            .is_some_and(|stamp| matches!(stamp.from, Location::Signature(_)));
        if in_signature && !keyed {
            found.add(
                "scheme_timestamp_place",
                "a timestamp at signature:KEY needs the format pairs, groups or positional",
            );
        }
    }

    fn check_jwt(&self, found: &mut Problems) {
        let Some(rule) = &self.jwt else { return };
        const KNOWN: [&str; 6] = ["HS256", "HS384", "HS512", "ES256", "RS256", "EdDSA"];
        if rule.algorithms.is_empty()
            || rule
                .algorithms
                .iter()
                .any(|name| !KNOWN.contains(&name.as_str()))
        {
            found.add(
                "scheme_jwt_algorithms",
                "`algorithms` must be some of HS256, HS384, HS512, ES256, RS256 and EdDSA",
            );
        }
    }

    fn check_paths(&self, found: &mut Problems) {
        let event = &self.event;
        let rules = [&event.id, &event.event_type, &event.time];
        let wild = |rule: &ValueRule| {
            rule.locations().any(|at| matches!(at, Location::Body(path) | Location::FormJson(_, path) if JsonPath::has_wildcard(path)))
        };
        if rules.into_iter().flatten().any(wild) {
            found.add(
                "scheme_wildcard",
                "[*] is for `dedupe` and `each` alone; use [0] for the first element",
            );
        }
        let shown = rules.into_iter().chain([&event.dedupe]).flatten();
        let mut locations = shown.flat_map(ValueRule::locations);
        if locations.any(|at| matches!(at, Location::Signature(_))) {
            found.add(
                "scheme_event_place",
                "event values cannot come from the signature header",
            );
        }
    }
}

struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, code: &'static str, message: &str) {
        self.0.push(Problem {
            code,
            message: message.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::Scheme;

    fn code(text: &str) -> &'static str {
        Scheme::from_toml(text).unwrap_err().code()
    }

    const HEAD: &str =
        "name = \"x\"\n[signature]\nalgorithm = \"hmac-sha256\"\nfrom = \"header:X\"\n";

    #[test]
    fn every_problem_has_a_stable_code() {
        assert_eq!(code("name = 1"), "scheme_syntax");
        assert_eq!(code("name = \"x\"\ntypo = 1"), "scheme_syntax");
        assert_eq!(code("name = \"x\""), "scheme_method");
        assert_eq!(code(HEAD), "scheme_content");
        assert_eq!(
            code(&format!("{HEAD}content = \"{{nope}}\"")),
            "scheme_syntax"
        );
        assert_eq!(
            code(&format!("{HEAD}content = \"{{ts}}\"")),
            "scheme_timestamp_missing"
        );
        assert_eq!(
            code(&format!(
                "{HEAD}content = \"{{body}}\"\n[timestamp]\nfrom = \"header:T\""
            )),
            "scheme_timestamp_unsigned"
        );
        assert_eq!(
            code(&format!("{HEAD}content = \"{{body}}\"\nmax = 1000")),
            "scheme_max"
        );
        assert_eq!(
            code(&format!(
                "{HEAD}content = \"{{body}}\"\n[secret]\nencoding = \"jwk\""
            )),
            "scheme_secret_encoding"
        );
        assert_eq!(
            code(&format!(
                "{HEAD}content = \"{{body}}\"\n[event]\nid = \"body:$[*].id\""
            )),
            "scheme_wildcard"
        );
    }

    #[test]
    fn a_custom_scheme_gets_five_minutes_both_ways() {
        let scheme = Scheme::from_toml(&format!(
            "{HEAD}content = \"{{ts}}.{{body}}\"\n[timestamp]\nfrom = \"header:T\""
        ))
        .unwrap();
        let rule = scheme.timestamp.unwrap();
        assert_eq!(
            (rule.past_s.seconds(), rule.future_s.seconds()),
            (Some(300), Some(300))
        );
    }
}
