//! A request as the receiver sees it, whoever carried it here.

use hookstead_signing::Headers;

/// The prefix of every path that the receiver answers.
const PATH_PREFIX: &str = "/webhooks/";

/// One HTTP request with its exact body bytes.
///
/// It has no `Debug`: body, headers and query may all hold secrets.
pub struct InboundRequest {
    /// The method, in upper case.
    pub method: String,
    /// The path without the query, as it was called.
    pub path: String,
    /// The query as it was called, without the question mark; empty for none.
    pub raw_query: String,
    /// Scheme and host that the sender called, without a trailing slash:
    /// `https://hooks.example.com`. Some schemes sign the whole address.
    pub origin: String,
    /// Headers in order of arrival.
    pub headers: Headers,
    /// The body as it was on the wire.
    pub body: Vec<u8>,
}

impl InboundRequest {
    /// The name in `/webhooks/{name}`, with or without a slash at the end.
    ///
    /// `None` for every other path. Nothing is ever redirected: a redirected
    /// POST comes back as a GET without its body.
    #[must_use]
    pub fn source_name(&self) -> Option<&str> {
        let rest = self.path.strip_prefix(PATH_PREFIX)?;
        let name = rest.strip_suffix('/').unwrap_or(rest);
        (!name.is_empty() && !name.contains('/')).then_some(name)
    }

    /// The address that the sender called, or the one it was told to call.
    ///
    /// `public_url` is the address as registered at the provider. Behind a
    /// custom domain or a proxy it differs from what arrives here, and schemes
    /// that sign the address sign the registered one.
    #[must_use]
    pub fn signed_url(&self, public_url: Option<&str>) -> String {
        let base = match public_url {
            Some(url) => url.to_owned(),
            None => format!("{}{}", self.origin, self.path),
        };
        if self.raw_query.is_empty() || base.contains('?') {
            base
        } else {
            format!("{base}?{}", self.raw_query)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, raw_query: &str) -> InboundRequest {
        InboundRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            raw_query: raw_query.to_owned(),
            origin: "https://api.example.test".to_owned(),
            headers: Headers::new(),
            body: Vec::new(),
        }
    }

    #[test]
    fn a_slash_at_the_end_names_the_same_source() {
        assert_eq!(
            request("/webhooks/stripe", "").source_name(),
            Some("stripe")
        );
        assert_eq!(
            request("/webhooks/stripe/", "").source_name(),
            Some("stripe")
        );
        for other in [
            "/webhooks/",
            "/webhooks//",
            "/webhooks//stripe",
            "/webhooks/a/b",
            "/",
            "",
        ] {
            assert_eq!(request(other, "").source_name(), None, "{other}");
        }
    }

    #[test]
    fn the_registered_address_wins_over_the_called_one() {
        let called = request("/webhooks/s", "a=1");
        assert_eq!(
            called.signed_url(None),
            "https://api.example.test/webhooks/s?a=1"
        );
        let registered = called.signed_url(Some("https://hooks.example.com/in"));
        assert_eq!(registered, "https://hooks.example.com/in?a=1");
        let with_query = called.signed_url(Some("https://hooks.example.com/in?a=1"));
        assert_eq!(with_query, "https://hooks.example.com/in?a=1");
    }
}
