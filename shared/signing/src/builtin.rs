//! The kinds that come with the product.

use std::sync::OnceLock;

use crate::scheme::Scheme;

struct Builtin {
    kind: &'static str,
    toml: &'static str,
    /// Parsed when first asked for: a receiver needs a few kinds, and parsing all of them would
    /// cost every cold start several milliseconds.
    parsed: OnceLock<Scheme>,
}

macro_rules! builtins {
    ($($kind:literal),* $(,)?) => {
        [$(Builtin {
            kind: $kind,
            toml: include_str!(concat!("../schemes/", $kind, ".toml")),
            parsed: OnceLock::new(),
        }),*]
    };
}

/// Sorted by kind, so that a lookup is a binary search.
static BUILTINS: [Builtin; 135] = builtins![
    "acuity",
    "adyen",
    "adyen-header",
    "airtable",
    "anthropic",
    "asana",
    "attio",
    "auth0",
    "authorize-net",
    "aws-sns",
    "azure-devops",
    "bigcommerce",
    "bitbucket",
    "box",
    "braintree",
    "brex",
    "buildkite",
    "cal-com",
    "calendly",
    "chargebee",
    "circleci",
    "clerk",
    "clickup",
    "close",
    "cloudevents",
    "cloudflare-notifications",
    "coinbase-commerce",
    "commercelayer",
    "contentful",
    "customerio",
    "discord",
    "docusign",
    "dodopayments",
    "doppler",
    "dropbox",
    "dropbox-sign",
    "easypost",
    "elevenlabs",
    "evervault",
    "fal-ai",
    "front-app",
    "front-rule",
    "fusionauth",
    "github",
    "gitlab",
    "gitlab-signing-token",
    "gocardless",
    "google-push",
    "grafana",
    "helpscout",
    "hookdeck",
    "hubspot-v1",
    "hubspot-v2",
    "hubspot-v3",
    "huggingface",
    "intercom",
    "jira",
    "learning-360",
    "lemonsqueezy",
    "line",
    "linear",
    "liveblocks",
    "livekit",
    "loops",
    "mailgun",
    "mandrill",
    "mercury",
    "messagebird",
    "meta",
    "microsoft-graph",
    "microsoft-teams-outgoing",
    "modern-treasury",
    "mux",
    "netlify",
    "notion",
    "okta",
    "openai",
    "orb",
    "paddle-billing",
    "paddle-classic",
    "pagerduty",
    "pandadoc",
    "patreon",
    "paypal",
    "paystack",
    "persona",
    "pipedrive",
    "plaid",
    "polar",
    "postmark",
    "qonto",
    "quickbooks",
    "razorpay",
    "recall-ai",
    "recurly",
    "render",
    "replicate",
    "resend",
    "retell",
    "revenuecat",
    "revolut",
    "sanity",
    "savvycal",
    "segment",
    "sendgrid",
    "sentry",
    "shopify",
    "slack",
    "snyk",
    "square",
    "standard-webhooks",
    "standard-webhooks-ed25519",
    "stripe",
    "svix",
    "telegram",
    "telnyx",
    "trello",
    "twilio",
    "twitch",
    "twitter",
    "typeform",
    "vapi",
    "vercel",
    "vonage",
    "webex",
    "webflow",
    "whereby",
    "wise",
    "woocommerce",
    "workos",
    "xero",
    "zapier-connections",
    "zendesk",
    "zoho-payments",
    "zoom",
];

/// The names of all built-in kinds, sorted.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|builtin| builtin.kind)
}

/// The scheme of a built-in kind.
#[must_use]
pub fn builtin(kind: &str) -> Option<&'static Scheme> {
    let at = BUILTINS
        .binary_search_by(|builtin| builtin.kind.cmp(kind))
        .ok()?;
    let builtin = &BUILTINS[at];
    Some(builtin.parsed.get_or_init(|| {
        Scheme::from_toml(builtin.toml).expect("a test reads and checks every built-in scheme file")
    }))
}

/// The TOML of a built-in kind, for people who start a scheme of their own from it.
#[must_use]
pub fn builtin_toml(kind: &str) -> Option<&'static str> {
    BUILTINS
        .iter()
        .find(|builtin| builtin.kind == kind)
        .map(|builtin| builtin.toml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scheme_is_usable_and_survives_json() {
        assert!(kinds().is_sorted());
        for builtin in &BUILTINS {
            let scheme = Scheme::from_toml(builtin.toml)
                .unwrap_or_else(|error| panic!("{}: {error}", builtin.kind));
            let again = Scheme::from_json(&scheme.to_json().to_string())
                .unwrap_or_else(|error| panic!("{}: {error}", builtin.kind));
            assert_eq!(scheme, again, "{}", builtin.kind);
        }
    }
}
