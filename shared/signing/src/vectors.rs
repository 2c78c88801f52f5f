//! Running published test vectors: one JSON object a line.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::location::{Location, ValueRule};
use crate::{Candidate, Headers, Reason, Request, Scheme, Secret, Timestamp};

/// What became of one vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorOutcome {
    /// The kind the vector is for.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// What went wrong; `None` when it passed.
    pub problem: Option<String>,
}

impl VectorOutcome {
    /// Whether the vector passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.problem.is_none()
    }
}

#[derive(Deserialize)]
struct Vector {
    provider: String,
    name: String,
    secret: String,
    method: String,
    url: String,
    headers: BTreeMap<String, Values>,
    body_base64: String,
    now_unix: i64,
    expect: Expect,
    expect_event_id: Option<String>,
    expect_event_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Valid,
    Invalid,
}

/// Runs one line of a vector file: verifies the request under the built-in kind `provider`, and
/// compares verdict, event id and event type with what the line expects.
///
/// A null id or type on a valid vector means that the scheme has no single header, body or form
/// field for it, or that the body cannot be parsed; values put together from several places or
/// taken from a token are not held against it.
#[must_use]
pub fn run_vector(line: &str) -> VectorOutcome {
    let vector: Vector = match serde_json::from_str(line) {
        Ok(vector) => vector,
        Err(error) => {
            return VectorOutcome {
                provider: String::new(),
                name: String::new(),
                problem: Some(format!("the line is not a vector: {error}")),
            };
        }
    };
    VectorOutcome {
        problem: run(&vector).err(),
        provider: vector.provider,
        name: vector.name,
    }
}

fn run(vector: &Vector) -> Result<(), String> {
    let scheme = crate::builtin(&vector.provider)
        .ok_or_else(|| format!("there is no kind `{}`", vector.provider))?;
    let body = STANDARD
        .decode(&vector.body_base64)
        .map_err(|_| "body_base64 is not base64".to_owned())?;
    let mut headers = Headers::new();
    for (name, values) in &vector.headers {
        match values {
            Values::One(value) => headers.push(name, value),
            Values::Many(values) => values.iter().for_each(|value| headers.push(name, value)),
        }
    }
    let request = Request {
        method: &vector.method,
        url: &vector.url,
        headers: &headers,
        body: &body,
        decoded_body: None,
    };
    let now = Timestamp::from_unix_timestamp(vector.now_unix)
        .map_err(|_| "now_unix is out of range".to_owned())?;
    let secret = Secret::new(vector.secret.clone()).ok();
    let candidates: Vec<_> = secret
        .iter()
        .map(|secret| Candidate {
            label: "vector",
            secret,
        })
        .collect();
    let verdict = crate::verify(scheme, &request, &candidates, now, None);
    match (verdict, vector.expect) {
        (Ok(verified), Expect::Valid) => {
            let extracted = crate::extract(scheme, &request, &verified);
            let id = (&extracted.event_id, &vector.expect_event_id);
            compare("event id", scheme.event.id.as_ref(), id)?;
            let event_type = (&extracted.event_type, &vector.expect_event_type);
            compare("event type", scheme.event.event_type.as_ref(), event_type)
        }
        (Err(_), Expect::Invalid) => Ok(()),
        (Ok(_), Expect::Invalid) => Err("verifies, but must not".to_owned()),
        (Err(rejection), Expect::Valid) => Err(refused(scheme, &rejection.reason)),
    }
}

fn refused(scheme: &Scheme, reason: &Reason) -> String {
    format!(
        "must verify under {}, but {reason} ({})",
        scheme.name,
        reason.code()
    )
}

fn compare(
    what: &str,
    rule: Option<&ValueRule>,
    (found, wanted): (&Option<String>, &Option<String>),
) -> Result<(), String> {
    let single = matches!(
        rule,
        None | Some(ValueRule::At(
            Location::Header(_) | Location::Body(_) | Location::Form(_)
        ))
    );
    if found == wanted || (wanted.is_none() && !single) {
        return Ok(());
    }
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    Err(format!(
        "{what} is {}, expected {}",
        shown(found),
        shown(wanted)
    ))
}
