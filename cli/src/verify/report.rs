//! What `hookstead verify` answers.

use std::fmt;

use hookstead_domain::{ErrorCode, EventTypePattern};
use hookstead_receiver::DedupeRule;
use hookstead_signing::{
    Candidate, Explanation, FollowUp, Handshake, Request, Scheme, dedupe_key, explain, extract,
    handshake, verify,
};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::output::{bad, good, printable};

/// The type of an event whose provider gives none.
const UNKNOWN_TYPE: &str = "unknown";

/// The working, and what the receiver would make of the request.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    explanation: Explanation,
    /// What would be stored; absent where the request does not verify.
    event: Option<Event>,
    /// How the receiver answers a request that is no event.
    handshake: Option<Answered>,
    /// Why the receiver refuses it whatever its signature is.
    refused: Option<Refused>,
}

#[derive(Debug, Serialize)]
struct Refused {
    status: u16,
    error: &'static str,
}

#[derive(Debug, Serialize)]
struct Event {
    id: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    occurred_at: Option<String>,
    /// What tells it from other events; absent where every arrival is its own event.
    dedupe_key: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answered {
    status: u16,
    signed: bool,
    /// What an operator has to do beside it.
    follow_up: Option<&'static str>,
}

impl Report {
    pub(super) fn new(
        scheme: &Scheme,
        request: &Request<'_>,
        candidates: &[Candidate<'_>],
        now: OffsetDateTime,
        tolerance_s: Option<u32>,
    ) -> Self {
        let verified = verify(scheme, request, candidates, now, tolerance_s).ok();
        let event = verified.map(|verified| {
            let extracted = extract(scheme, request, &verified);
            let occurred = extracted
                .occurred_at
                .and_then(|at| at.format(&Rfc3339).ok());
            Event {
                dedupe_key: dedupe_key(scheme, request, &verified, &extracted),
                id: extracted.event_id,
                event_type: extracted.event_type,
                occurred_at: occurred,
            }
        });
        let (answer, signed) = match handshake(scheme, request, candidates, now) {
            Handshake::No => (None, false),
            Handshake::Answer(answer) => (Some(answer), false),
            Handshake::AnswerIfVerified(answer) => (Some(answer), true),
        };
        Self {
            explanation: explain(scheme, request, candidates, now, tolerance_s),
            event,
            handshake: answer.map(|answer| Answered {
                status: answer.status,
                signed,
                follow_up: answer.follow_up.map(|follow_up| match follow_up {
                    FollowUp::StoreSecret(_) => "store the secret that the request hands over",
                    FollowUp::ConfirmSubscription { .. } => "open the confirmation URL in the body",
                    _ => "see docs/providers.md",
                }),
            }),
            refused: None,
        }
    }

    /// The same with a source's own rule where no key is read from the request.
    pub(super) fn with_rule(mut self, rule: &DedupeRule) -> Self {
        if let Some(event) = &mut self.event {
            match rule {
                DedupeRule::OfKind | DedupeRule::At(_) => {}
                DedupeRule::EveryArrival => event.dedupe_key = None,
                DedupeRule::EqualBody => event.dedupe_key = Some("body: its SHA-256".to_owned()),
            }
        }
        self
    }

    /// The same with the types that the source takes; none: every type.
    pub(super) fn with_allowed(self, allowed: &[EventTypePattern]) -> Self {
        let Some(event) = &self.event else {
            return self;
        };
        let event_type = event.event_type.as_deref().unwrap_or(UNKNOWN_TYPE);
        let is_taken = allowed.is_empty() || allowed.iter().any(|one| one.matches(event_type));
        self.with_refusal((!is_taken).then_some(ErrorCode::EventTypeNotAllowed))
    }

    /// The same with what the receiver answers whatever the signature is.
    pub(super) fn with_refusal(mut self, code: Option<ErrorCode>) -> Self {
        if let Some(code) = code {
            self.refused = Some(Refused {
                status: code.status(),
                error: code.as_str(),
            });
        }
        self
    }

    /// The same with one more thing that went wrong, said first.
    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        if !self.explanation.verified {
            self.explanation.hints.splice(..0, hint);
        }
        self
    }

    /// Whether the receiver would take it: as an event, or as a handshake that
    /// carries no signature.
    pub(super) fn verifies(&self) -> bool {
        let is_taken = self.explanation.verified && self.refused.is_none();
        is_taken || self.handshake.as_ref().is_some_and(Answered::is_welcome)
    }
}

impl Answered {
    fn is_welcome(&self) -> bool {
        !self.signed && (200..300).contains(&self.status)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.explanation.to_string();
        for (index, line) in text.lines().enumerate() {
            // Names and values of the request may hold control characters.
            let line = printable(line);
            match (index, self.explanation.verified) {
                (0, true) => writeln!(f, "{}", good(&line))?,
                (0, false) => writeln!(f, "{}", bad(&line))?,
                _ => writeln!(f, "{line}")?,
            }
        }
        if let Some(event) = &self.event {
            let facts = [
                ("event id", &event.id),
                ("event type", &event.event_type),
                ("occurred at", &event.occurred_at),
                ("dedupe key", &event.dedupe_key),
            ];
            for (name, value) in facts {
                let value = value.as_deref().unwrap_or("none");
                writeln!(f, "  {name}: {}", printable(value))?;
            }
        }
        if let Some(Refused { status, error }) = &self.refused {
            writeln!(
                f,
                "  the receiver refuses it all the same: {status} {error}"
            )?;
        }
        if let Some(answered) = &self.handshake {
            let when = if answered.signed {
                ", when it verifies,"
            } else {
                ""
            };
            let status = answered.status;
            writeln!(
                f,
                "  handshake: the receiver{when} answers {status} and stores nothing"
            )?;
            if let Some(follow_up) = answered.follow_up {
                writeln!(f, "  left to do: {follow_up}")?;
            }
        }
        Ok(())
    }
}
