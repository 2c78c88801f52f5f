//! Twilio: the URL with or without its port, then the form fields in order.

use crate::algorithm::{Algorithm, same, sha256_hex};
use crate::form;
use crate::location::Location;
use crate::plan::{Bit, Content, Plan, PlanGroup, groups};
use crate::reason::Reason;
use crate::scheme::SignatureRule;
use crate::step::form::sorted_distinct;
use crate::view::View;

const SETTINGS: &str = "X-Twilio-Webhooks-Signature-Settings";

pub(crate) fn plan<'a>(
    view: &View<'a>,
    rule: &'a SignatureRule,
    mut plan: Plan<'a>,
) -> Result<Plan<'a>, Reason> {
    plan.algorithm = algorithm(view)?;
    let found = groups(
        view,
        rule,
        rule.from.first().ok_or(Reason::MissingSignature)?,
    )?;
    let fields = signed_fields(view)?;
    for group in found {
        let contents = url_variants(view.request.url)
            .into_iter()
            .map(|url| {
                vec![
                    Bit::new("URL", url.into_bytes()),
                    Bit::new("sorted form", fields.clone()),
                ]
            })
            .collect();
        plan.groups.push(PlanGroup {
            signatures: group.signatures.into_iter().map(Into::into).collect(),
            contents,
            ..PlanGroup::default()
        });
    }
    Ok(plan)
}

/// The text Twilio signs for this request.
pub(crate) fn content<'a>(view: &View<'a>) -> Result<Content<'a>, Reason> {
    Ok(vec![
        Bit::new("URL", view.request.url.as_bytes()),
        Bit::new("sorted form", signed_fields(view)?),
    ])
}

fn algorithm(view: &View<'_>) -> Result<Algorithm, Reason> {
    let Some(settings) = view.request.headers.first(SETTINGS) else {
        return Ok(Algorithm::HmacSha1);
    };
    let named = settings
        .split(',')
        .filter_map(|setting| setting.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, value)| *name == "algorithm" && !value.is_empty());
    match named
        .map(|(_, value)| value.to_ascii_uppercase())
        .as_deref()
    {
        None | Some("HMAC_SHA1") => Ok(Algorithm::HmacSha1),
        Some("HMAC_SHA256") => Ok(Algorithm::HmacSha256),
        Some(_) => Err(Reason::UnsupportedAlgorithm),
    }
}

/// Form fields are signed one by one; any other body only through its hash in the query.
fn signed_fields(view: &View<'_>) -> Result<Vec<u8>, Reason> {
    let body = view.signed_body();
    if view.request.is_form() {
        return Ok(sorted_distinct(body));
    }
    let Some(hash) = form::first(view.request.query().as_bytes(), "bodySHA256") else {
        // A call by GET has neither; a body that nothing vouches for is no one's.
        let missing = || Reason::MissingField(Location::Query("bodySHA256".into()).to_string());
        return body.is_empty().then(Vec::new).ok_or_else(missing);
    };
    if same(hash.as_bytes(), sha256_hex(body).as_bytes()) {
        Ok(Vec::new())
    } else {
        Err(Reason::HashMismatch("bodySHA256".into()))
    }
}

/// The URL as given, without its port, and with the port its scheme implies.
fn url_variants(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return vec![url.to_owned()];
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host_at = authority.rfind('@').map_or(0, |at| at + 1);
    let port = authority[host_at..]
        .rfind(':')
        .map(|at| host_at + at)
        .filter(|at| {
            authority[at + 1..]
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        });
    let other = match port {
        Some(at) => format!("{scheme}://{}{tail}", &authority[..at]),
        None => {
            let secure = scheme.eq_ignore_ascii_case("https");
            let port = if secure { 443 } else { 80 };
            format!("{scheme}://{authority}:{port}{tail}")
        }
    };
    vec![url.to_owned(), other]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_added_or_dropped() {
        let other = |url: &str| url_variants(url).pop().unwrap();
        assert_eq!(other("https://a.test/x?y=1"), "https://a.test:443/x?y=1");
        assert_eq!(other("HTTPS://a.test/x"), "HTTPS://a.test:443/x");
        assert_eq!(other("http://a.test:81/x"), "http://a.test/x");
        assert_eq!(other("https://u:p@a.test?b"), "https://u:p@a.test:443?b");
        assert_eq!(other("https://[::1]:8443/"), "https://[::1]/");
        assert_eq!(other("https://[::1]/"), "https://[::1]:443/");
    }
}
