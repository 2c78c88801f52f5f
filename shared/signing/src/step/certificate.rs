//! Which certificate URLs are the provider's own.

use crate::location::Location;
use crate::reason::Reason;
use crate::request::Request;
use crate::scheme::{Scheme, Step};
use crate::view::View;

/// The URL the signing certificate of this request has to be fetched from, once its host was
/// checked. `None` for schemes that need no certificate.
///
/// # Errors
///
/// [`Reason::UntrustedCertificateUrl`] when the request names a host that is not the provider's,
/// [`Reason::MissingField`] when it names none.
pub fn certificate_url(scheme: &Scheme, request: &Request<'_>) -> Result<Option<String>, Reason> {
    let view = View::new(scheme, request);
    let step = scheme.signature.as_ref().and_then(|rule| rule.step);
    match step {
        Some(Step::Paypal) => trusted(&view, "header:PAYPAL-CERT-URL", is_paypal).map(Some),
        Some(Step::AwsSns) => trusted(&view, "body:$.SigningCertURL", is_sns).map(Some),
        _ => Ok(None),
    }
}

/// The URL at `at`, if it is https and `url_is_theirs`.
pub(crate) fn trusted(
    view: &View<'_>,
    at: &str,
    url_is_theirs: fn(host: &str, path: &str) -> bool,
) -> Result<String, Reason> {
    let location: Location = at.parse().map_err(|_| Reason::MissingField(at.into()))?;
    let url = view
        .text(&location)
        .ok_or_else(|| Reason::MissingField(at.into()))?;
    let rest = url
        .strip_prefix("https://")
        .ok_or(Reason::UntrustedCertificateUrl)?;
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let plain_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let lower = host.to_ascii_lowercase();
    if host.bytes().all(plain_host) && url_is_theirs(&lower, path) {
        Ok(url)
    } else {
        Err(Reason::UntrustedCertificateUrl)
    }
}

pub(crate) fn is_paypal(host: &str, _path: &str) -> bool {
    host == "paypal.com" || host.ends_with(".paypal.com")
}

/// `sns.<region>.amazonaws.com`, in China with `.cn` behind it, and a `.pem` file.
pub(crate) fn is_sns(host: &str, path: &str) -> bool {
    let region = host.strip_prefix("sns.").and_then(|rest| {
        rest.strip_suffix(".amazonaws.com")
            .or_else(|| rest.strip_suffix(".amazonaws.com.cn"))
    });
    let is_region = |region: &str| {
        region.len() >= 3
            && region
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    region.is_some_and(is_region) && path.ends_with(".pem") && !path.contains(['?', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_provider_are_trusted() {
        assert!(is_paypal("api.paypal.com", "/x"));
        assert!(!is_paypal("api.paypal.com.evil.test", "/x"));
        assert!(!is_paypal("evilpaypal.com", "/x"));
        assert!(is_sns("sns.us-west-2.amazonaws.com", "/a.pem"));
        assert!(is_sns("sns.cn-north-1.amazonaws.com.cn", "/a.pem"));
        assert!(!is_sns("sns.us-west-2.amazonaws.com", "/a.txt"));
        assert!(!is_sns("sns.us-west-2.amazonaws.com", "/?x=.pem"));
        assert!(!is_sns("sns.evil.test.amazonaws.com", "/a.pem"));
        assert!(!is_sns("evil.s3.amazonaws.com", "/a.pem"));
    }
}
