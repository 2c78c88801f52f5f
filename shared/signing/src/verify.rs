//! The verdict on a request.

use zeroize::Zeroizing;

use crate::Timestamp;
use crate::algorithm::{Algorithm, same};
use crate::credentials;
use crate::encoding::Compare;
use crate::jwt;
use crate::location::Location;
use crate::plan::{self, Content, Data, Plan, PlanGroup};
use crate::reason::{Reason, Rejection};
use crate::request::{Candidate, Request};
use crate::scheme::{Limit, NoLimit, RequireRule, Scheme, SignatureRule, Step};
use crate::secret::{self, Key, Parts, SecretError};
use crate::timestamp::{self, Freshness};
use crate::view::View;

/// A request that is what its sender made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Label of the secret version that matched.
    pub label: String,
    /// The signed time, where the scheme signs one that can be read.
    pub signed_at: Option<Timestamp>,
    /// Claims of the verified token, as JSON.
    pub(crate) claims: Option<String>,
    /// Hash of the signed token, which carries its own time.
    pub(crate) token_sha256: Option<String>,
    /// Which group and content matched.
    pub(crate) matched: (usize, usize),
}

/// Verifies `request` under `scheme` with any of `candidates` at the time `now`.
///
/// `tolerance_s` replaces the scheme's own window on both sides, where the scheme signs a time.
///
/// # Errors
///
/// A [`Rejection`] that says why, without any secret or body material.
pub fn verify(
    scheme: &Scheme,
    request: &Request<'_>,
    candidates: &[Candidate<'_>],
    now: Timestamp,
    tolerance_s: Option<u32>,
) -> Result<Verified, Rejection> {
    let mut trial = Trial {
        view: View::new(scheme, request),
        candidates,
        labels_tried: Vec::new(),
    };
    let outcome = trial.run(now, tolerance_s);
    outcome.map_err(|(reason, skew_s)| Rejection {
        reason,
        skew_s,
        labels_tried: trial.labels_tried,
    })
}

/// A reason with the clock difference, where one is known.
type Fault = (Reason, Option<i64>);

fn fault(reason: Reason) -> Fault {
    (reason, None)
}

/// Holds the request against one field that it must have.
fn required(view: &View<'_>, rule: &RequireRule) -> Result<(), Reason> {
    let missing = || Reason::MissingField(rule.at.to_string());
    if rule.one_of.is_empty() && view.holds(&rule.at) {
        return Ok(());
    }
    let value = view.text(&rule.at).ok_or_else(missing)?;
    if value.trim().is_empty() {
        return Err(missing());
    }
    if view.repeats(&rule.at) || !rule.allows(&value) {
        return Err(Reason::UnexpectedValue(rule.at.to_string()));
    }
    Ok(())
}

struct Trial<'a> {
    view: View<'a>,
    candidates: &'a [Candidate<'a>],
    labels_tried: Vec<String>,
}

impl<'a> Trial<'a> {
    fn run(&mut self, now: Timestamp, tolerance_s: Option<u32>) -> Result<Verified, Fault> {
        let scheme = self.view.scheme;
        for rule in &scheme.require {
            required(&self.view, rule).map_err(fault)?;
        }
        if let Some(rule) = &scheme.signature {
            return self.signature(rule, now, tolerance_s);
        }
        if let Some(rule) = &scheme.jwt {
            return self.jwt(rule, now, tolerance_s);
        }
        let presented = match (&scheme.token, &scheme.basic) {
            (Some(rule), _) => credentials::tokens(&self.view, rule).map_err(fault)?,
            (None, Some(rule)) => credentials::basic(&self.view, rule).map_err(fault)?,
            (None, None) => return Err(fault(Reason::NoUsableSecret)),
        };
        for candidate in self.candidates {
            let Ok(Key::Shared(key)) = secret::key(&scheme.secret, &candidate.secret.parts(), None)
            else {
                continue;
            };
            self.labels_tried.push(candidate.label.to_owned());
            if presented.iter().all(|token| same(token.as_bytes(), &key)) {
                return Ok(Verified {
                    label: candidate.label.to_owned(),
                    signed_at: None,
                    claims: None,
                    token_sha256: None,
                    matched: (0, 0),
                });
            }
        }
        Err(fault(self.mismatch()))
    }

    fn mismatch(&self) -> Reason {
        if self.labels_tried.is_empty() {
            Reason::NoUsableSecret
        } else {
            Reason::Mismatch
        }
    }

    fn signature(
        &mut self,
        rule: &'a SignatureRule,
        now: Timestamp,
        tolerance_s: Option<u32>,
    ) -> Result<Verified, Fault> {
        if self.candidates.is_empty() {
            return Err(fault(Reason::NoUsableSecret));
        }
        let plan = plan::plan(&self.view, rule).map_err(fault)?;
        let mut refused = None;
        for candidate in self.candidates {
            let parts = candidate.secret.parts();
            match matching(&self.view, rule, &plan, &parts) {
                Ok(Some(matched)) => {
                    self.labels_tried.push(candidate.label.to_owned());
                    let ts = plan.groups[matched.0].ts.as_deref();
                    let freshness = self.freshness(ts, now, tolerance_s)?;
                    return Ok(Verified {
                        label: candidate.label.to_owned(),
                        signed_at: freshness.stamp.and_then(timestamp::Stamp::to_time),
                        claims: None,
                        token_sha256: None,
                        matched,
                    });
                }
                Ok(None) => self.labels_tried.push(candidate.label.to_owned()),
                Err(reason) => refused = Some(reason),
            }
        }
        Err(fault(match refused {
            Some(reason) if self.labels_tried.is_empty() => reason,
            _ => self.mismatch(),
        }))
    }

    /// Judges the signed time, wherever it is.
    fn freshness(
        &self,
        ts: Option<&str>,
        now: Timestamp,
        tolerance_s: Option<u32>,
    ) -> Result<Freshness, Fault> {
        let unknown = Freshness {
            stamp: None,
            skew_s: None,
            fault: None,
        };
        let Some(rule) = &self.view.scheme.timestamp else {
            return Ok(unknown);
        };
        let text = match ts {
            Some(ts) => Some(ts.to_owned()),
            None => self.view.signed_time(rule),
        };
        let none = Limit::Unbounded(NoLimit::None);
        let bounded = tolerance_s.is_some() || rule.past_s != none || rule.future_s != none;
        let Some(text) = text else {
            if bounded && !rule.optional {
                return Err(fault(Reason::MissingTimestamp));
            }
            return Ok(unknown);
        };
        let mut freshness = timestamp::judge(rule, &text, now, tolerance_s);
        if freshness.fault == Some(Reason::MalformedTimestamp)
            && matches!(rule.from, Location::Claim(_))
            && !bounded
        {
            freshness.fault = None;
        }
        match freshness.fault.take() {
            Some(reason) => Err((reason, freshness.skew_s)),
            None => Ok(freshness),
        }
    }

    fn jwt(
        &mut self,
        rule: &'a crate::scheme::JwtRule,
        now: Timestamp,
        tolerance_s: Option<u32>,
    ) -> Result<Verified, Fault> {
        let token = jwt::Token::read(&self.view, rule).map_err(fault)?;
        let mut found = None;
        for candidate in self.candidates {
            let parts = candidate.secret.parts();
            let Some(fits) = token.fits(&self.view.scheme.secret, &parts) else {
                continue;
            };
            self.labels_tried.push(candidate.label.to_owned());
            if fits {
                let issuer = rule.issuer_from_secret.as_deref();
                let issuer = issuer.map(|name| parts.member(name).unwrap_or("").to_owned());
                found = Some((candidate.label.to_owned(), issuer));
                break;
            }
        }
        let (label, issuer) = found.ok_or_else(|| fault(self.mismatch()))?;
        let checked = token.check_claims(&self.view, rule, issuer.as_deref(), now);
        checked?;
        let freshness = {
            let mut view = View::new(self.view.scheme, self.view.request);
            view.claims = Some(&token.claims);
            let trial = Trial {
                view,
                candidates: &[],
                labels_tried: Vec::new(),
            };
            trial.freshness(None, now, tolerance_s)?
        };
        Ok(Verified {
            label,
            signed_at: freshness.stamp.and_then(timestamp::Stamp::to_time),
            token_sha256: Some(crate::algorithm::sha256_hex(token.signed.as_bytes())),
            claims: Some(token.claims),
            matched: (0, 0),
        })
    }
}

/// The first group and content that match, or the last ones where all have to.
pub(crate) fn matching(
    view: &View<'_>,
    rule: &SignatureRule,
    plan: &Plan<'_>,
    parts: &Parts<'_>,
) -> Result<Option<(usize, usize)>, Reason> {
    if let Some((member, value)) = &plan.guard
        && parts.member(member).is_some_and(|wanted| wanted != value)
    {
        return Err(Reason::UnexpectedValue((*member).to_owned()));
    }
    let mut last = None;
    let mut usable = false;
    let mut unusable = None;
    for (at, group) in plan.groups.iter().enumerate() {
        let key = secret::key(&view.scheme.secret, parts, group.member.as_deref());
        let key = match key {
            Ok(key) => key,
            Err(error) => {
                unusable = Some(unusable_reason(rule, &error));
                continue;
            }
        };
        usable = true;
        match group_matches(rule, plan.algorithm, group, &key, parts) {
            Some(content) if plan.all => last = Some((at, content)),
            Some(content) => return Ok(Some((at, content))),
            None if plan.all => return Ok(None),
            None => {}
        }
    }
    match unusable {
        Some(reason) if !usable => Err(reason),
        _ => Ok(last),
    }
}

fn unusable_reason(rule: &SignatureRule, error: &SecretError) -> Reason {
    let certificate = matches!(rule.step, Some(Step::AwsSns | Step::Paypal));
    match error {
        SecretError::MemberMissing(_) | SecretError::NotAPublicKey if certificate => {
            Reason::CertificateNeeded
        }
        _ => Reason::NoUsableSecret,
    }
}

/// The content of `group` that a signature covers under `key`.
fn group_matches(
    rule: &SignatureRule,
    algorithm: Algorithm,
    group: &PlanGroup<'_>,
    key: &Key,
    parts: &Parts<'_>,
) -> Option<usize> {
    let ours = |owner: &Option<String>| match owner {
        Some(owner) => parts.member("public_key") == Some(owner),
        None => true,
    };
    let signatures: Vec<&str> = group
        .signatures
        .iter()
        .filter(|signature| ours(&signature.owner))
        .map(|signature| signature.text.as_str())
        .collect();
    group.contents.iter().position(|content| {
        let Some(pieces) = resolve(content, parts, key) else {
            return false;
        };
        match key {
            Key::Shared(key) => hash_matches(rule, algorithm, key, &pieces, &signatures),
            Key::Public(keys) => {
                let Some(public) = algorithm.public() else {
                    return false;
                };
                let message = pieces.concat();
                signatures.iter().any(|signature| {
                    let decoded = rule.encoding.decode_as(rule.decoding, signature);
                    decoded.is_some_and(|signature| {
                        keys.iter()
                            .any(|key| key.verifies(public, &message, &signature))
                    })
                })
            }
        }
    })
}

/// The bytes of every piece, with the secret's own put in.
pub(crate) fn resolve<'c>(
    content: &'c Content<'_>,
    parts: &'c Parts<'_>,
    key: &'c Key,
) -> Option<Vec<&'c [u8]>> {
    content
        .iter()
        .map(|bit| match &bit.data {
            Data::Bytes(bytes) => Some(&**bytes),
            Data::Secret(Some(member)) => parts.member(member).map(str::as_bytes),
            Data::Secret(None) => match key {
                Key::Shared(key) => Some(key.as_slice()),
                Key::Public(_) => None,
            },
        })
        .collect()
}

fn hash_matches(
    rule: &SignatureRule,
    algorithm: Algorithm,
    key: &Zeroizing<Vec<u8>>,
    pieces: &[&[u8]],
    signatures: &[&str],
) -> bool {
    let Some(digest) = algorithm.digest(key, pieces) else {
        return false;
    };
    let written = rule.encoding.encode(&digest);
    signatures.iter().any(|signature| match rule.compare {
        Compare::Text => same(signature.as_bytes(), written.as_bytes()),
        Compare::Bytes => rule
            .encoding
            .decode_as(rule.decoding, signature)
            .is_some_and(|signature| same(&signature, &digest)),
    })
}
