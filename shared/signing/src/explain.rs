//! Telling a person why a request verifies or not.

use std::fmt;

use serde::Serialize;

use crate::Timestamp;
use crate::algorithm::sha256_hex;
use crate::hints::hints;
use crate::location::Location;
use crate::plan::{self, Content, Data, Plan};
use crate::request::{Candidate, Request};
use crate::scheme::Scheme;
use crate::secret::{self, Key};
use crate::timestamp::{self};
use crate::verify::{matching, verify};
use crate::view::View;

/// Everything that went into a verdict. Holds no secret and no body material.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The scheme's name.
    pub scheme: String,
    /// The verdict.
    pub verified: bool,
    /// Stable code of the refusal.
    pub reason: Option<String>,
    /// The refusal in words.
    pub message: Option<String>,
    /// The places the scheme reads, and how often each was found.
    pub places: Vec<Place>,
    /// The texts a signature may cover, piece by piece.
    pub signed_texts: Vec<SignedText>,
    /// The signed time.
    pub timestamp: Option<StampInfo>,
    /// Every secret that was tried.
    pub candidates: Vec<CandidateInfo>,
    /// What most likely went wrong, best guess first.
    pub hints: Vec<String>,
}

/// A place the scheme reads.
#[derive(Debug, Clone, Serialize)]
pub struct Place {
    /// Where it is.
    pub at: String,
    /// How many values were found there.
    pub found: usize,
}

/// A text a signature may cover.
#[derive(Debug, Clone, Serialize)]
pub struct SignedText {
    /// Its pieces in order.
    pub pieces: Vec<PieceInfo>,
    /// SHA-256 of the whole text, where it holds no secret.
    pub sha256: Option<String>,
}

/// A piece of a signed text.
#[derive(Debug, Clone, Serialize)]
pub struct PieceInfo {
    /// What it is.
    pub name: String,
    /// Its length; absent for secrets.
    pub bytes: Option<usize>,
    /// Its SHA-256; absent for secrets.
    pub sha256: Option<String>,
}

/// The signed time and its window.
#[derive(Debug, Clone, Serialize)]
pub struct StampInfo {
    /// Where it is.
    pub at: String,
    /// Whether it could be read.
    pub readable: bool,
    /// Receiver clock minus signed time, in seconds.
    pub skew_s: Option<i64>,
    /// Largest accepted age; absent where there is no bound.
    pub past_s: Option<u32>,
    /// Largest accepted lead; absent where there is no bound.
    pub future_s: Option<u32>,
}

/// A secret that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateInfo {
    /// Its version label.
    pub label: String,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
    /// Whether it made one of the signatures.
    pub matched: bool,
}

/// Verifies `request` like [`verify`](crate::verify()) and keeps the working.
#[must_use]
pub fn explain(
    scheme: &Scheme,
    request: &Request<'_>,
    candidates: &[Candidate<'_>],
    now: Timestamp,
    tolerance_s: Option<u32>,
) -> Explanation {
    let view = View::new(scheme, request);
    let verdict = verify(scheme, request, candidates, now, tolerance_s);
    let plan = scheme
        .signature
        .as_ref()
        .and_then(|rule| plan::plan(&view, rule).ok());
    let reason = verdict.as_ref().err().map(|rejection| &rejection.reason);
    Explanation {
        scheme: scheme.name.clone(),
        verified: verdict.is_ok(),
        reason: reason.map(|reason| reason.code().to_owned()),
        message: reason.map(ToString::to_string),
        places: places(&view),
        signed_texts: plan.as_ref().map(signed_texts).unwrap_or_default(),
        timestamp: stamp(&view, plan.as_ref(), now, tolerance_s),
        candidates: candidates
            .iter()
            .map(|candidate| candidate_info(&view, plan.as_ref(), candidate, &verdict))
            .collect(),
        hints: reason.map_or_else(Vec::new, |reason| {
            hints(scheme, request, candidates, now, reason)
        }),
    }
}

fn places(view: &View<'_>) -> Vec<Place> {
    let scheme = view.scheme;
    let mut locations: Vec<&Location> = scheme.require.iter().map(|rule| &rule.at).collect();
    locations.extend(scheme.signature.iter().flat_map(|rule| &rule.from));
    locations.extend(scheme.token.iter().flat_map(|rule| &rule.from));
    locations.extend(scheme.basic.iter().map(|rule| &rule.from));
    locations.extend(scheme.jwt.iter().map(|rule| &rule.from));
    locations.extend(scheme.timestamp.iter().map(|rule| &rule.from));
    locations
        .into_iter()
        .filter(|at| !matches!(at, Location::Signature(_) | Location::Claim(_)))
        .map(|at| Place {
            at: at.to_string(),
            found: view.texts(at).len().max(usize::from(view.holds(at))),
        })
        .collect()
}

fn signed_texts(plan: &Plan<'_>) -> Vec<SignedText> {
    let contents = plan.groups.iter().flat_map(|group| &group.contents);
    contents.map(signed_text).collect()
}

fn signed_text(content: &Content<'_>) -> SignedText {
    let mut whole = Some(Vec::new());
    let pieces = content
        .iter()
        .map(|bit| match &bit.data {
            Data::Bytes(bytes) => {
                if let Some(whole) = &mut whole {
                    whole.extend_from_slice(bytes);
                }
                PieceInfo {
                    name: bit.name.clone().into_owned(),
                    bytes: Some(bytes.len()),
                    sha256: Some(sha256_hex(bytes)),
                }
            }
            Data::Secret(_) => {
                whole = None;
                PieceInfo {
                    name: bit.name.clone().into_owned(),
                    bytes: None,
                    sha256: None,
                }
            }
        })
        .collect();
    SignedText {
        pieces,
        sha256: whole.map(|text| sha256_hex(&text)),
    }
}

fn stamp(
    view: &View<'_>,
    plan: Option<&Plan<'_>>,
    now: Timestamp,
    tolerance_s: Option<u32>,
) -> Option<StampInfo> {
    let rule = view.scheme.timestamp.as_ref()?;
    let in_plan = plan.and_then(|plan| plan.groups.first()?.ts.clone());
    let text = in_plan.or_else(|| view.signed_time(rule));
    let freshness = text.map(|text| timestamp::judge(rule, &text, now, tolerance_s));
    Some(StampInfo {
        at: rule.from.to_string(),
        readable: freshness
            .as_ref()
            .is_some_and(|freshness| freshness.stamp.is_some()),
        skew_s: freshness.and_then(|freshness| freshness.skew_s),
        past_s: tolerance_s.or(rule.past_s.seconds()),
        future_s: tolerance_s.or(rule.future_s.seconds()),
    })
}

fn candidate_info(
    view: &View<'_>,
    plan: Option<&Plan<'_>>,
    candidate: &Candidate<'_>,
    verdict: &Result<crate::Verified, crate::Rejection>,
) -> CandidateInfo {
    let parts = candidate.secret.parts();
    let member = plan.and_then(|plan| plan.groups.first()?.member.as_deref());
    let problem = match secret::key(&view.scheme.secret, &parts, member) {
        Ok(Key::Shared(_) | Key::Public(_)) => None,
        Err(error) if view.scheme.jwt.is_none() => Some(error.to_string()),
        Err(_) => None,
    };
    let matched = match (&view.scheme.signature, plan) {
        (Some(rule), Some(plan)) => matches!(matching(view, rule, plan, &parts), Ok(Some(_))),
        _ => verdict
            .as_ref()
            .is_ok_and(|verified| verified.label == candidate.label),
    };
    CandidateInfo {
        label: candidate.label.to_owned(),
        problem,
        matched,
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.reason, &self.message) {
            (Some(code), Some(message)) => {
                writeln!(f, "REFUSED under {}: {message} ({code})", self.scheme)?;
            }
            _ => writeln!(f, "VERIFIED under {}", self.scheme)?,
        }
        for place in &self.places {
            let found = match place.found {
                0 => "not found".to_owned(),
                1 => "found".to_owned(),
                many => format!("found {many} times"),
            };
            writeln!(f, "  {:<44} {found}", place.at)?;
        }
        for text in &self.signed_texts {
            writeln!(f, "  signed text:")?;
            for piece in &text.pieces {
                match (piece.bytes, &piece.sha256) {
                    (Some(bytes), Some(sha256)) => {
                        let name = &piece.name;
                        writeln!(f, "    {name:<28} {bytes:>8} bytes  sha256 {sha256}")?;
                    }
                    _ => writeln!(f, "    {:<28}   (hidden)", piece.name)?,
                }
            }
        }
        if let Some(stamp) = &self.timestamp {
            let bound = |bound: Option<u32>| match bound {
                Some(seconds) => format!("{seconds} s"),
                None => "no limit".to_owned(),
            };
            let skew = match stamp.skew_s {
                Some(skew) if skew < 0 => format!("{} s ahead of the clock", skew.unsigned_abs()),
                Some(skew) => format!("{skew} s old"),
                None => "not readable as a time".to_owned(),
            };
            let (past, future) = (bound(stamp.past_s), bound(stamp.future_s));
            writeln!(
                f,
                "  signed time: {skew} (accepted: age {past}, lead {future})"
            )?;
        }
        for candidate in &self.candidates {
            let state = match (&candidate.problem, candidate.matched) {
                (Some(problem), _) => problem.as_str(),
                (None, true) => "made a signature of this request",
                (None, false) => "made none of the signatures",
            };
            writeln!(f, "  secret {}: {state}", candidate.label)?;
        }
        for hint in &self.hints {
            writeln!(f, "  hint: {hint}")?;
        }
        Ok(())
    }
}
