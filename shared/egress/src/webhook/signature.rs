//! The signature of Standard Webhooks.

use hookstead_domain::Timestamp;
use hookstead_signing::{Headers, Secret, SignError, SignInput, builtin, sign};
use http::{HeaderMap, HeaderValue};

/// The kind of the signing crate that this is.
const KIND: &str = "standard-webhooks";

/// Whatever the signing crate cannot use a secret for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningFailed {
    /// The secret is no Standard Webhooks secret: `whsec_` and base64.
    #[error("the secret cannot sign")]
    Secret(#[source] SignError),
    /// The id cannot stand in a header.
    #[error("the id cannot stand in a header")]
    Id,
}

/// What a message is signed with.
#[derive(Clone, Copy, Debug)]
pub struct SigningSecrets<'a> {
    /// The secret of today.
    pub current: &'a Secret,
    /// The one before, as long as both are accepted.
    pub previous: Option<&'a Secret>,
}

/// The three headers of Standard Webhooks.
#[derive(Clone)]
pub struct StandardSignature {
    id: HeaderValue,
    timestamp: HeaderValue,
    signature: HeaderValue,
}

impl StandardSignature {
    /// Signs `body` under an id that is the same for every repetition, and the time now.
    /// One signature per secret, the current one first.
    ///
    /// # Errors
    ///
    /// [`SigningFailed`] where a secret cannot sign.
    pub fn sign(
        id: &str,
        now: Timestamp,
        body: &[u8],
        secrets: SigningSecrets<'_>,
    ) -> Result<Self, SigningFailed> {
        let mut signatures = one(id, now, body, secrets.current)?;
        if let Some(previous) = secrets.previous {
            signatures.push(' ');
            signatures.push_str(&one(id, now, body, previous)?);
        }
        Ok(Self {
            id: HeaderValue::from_str(id).map_err(|_| SigningFailed::Id)?,
            timestamp: HeaderValue::from(now.unix_timestamp()),
            signature: HeaderValue::try_from(signatures)
                .map_err(|_| SigningFailed::Secret(SignError::NoUsableSecret))?,
        })
    }

    /// Sets the headers, in place of any of these names.
    pub fn put_into(self, headers: &mut HeaderMap) {
        headers.insert("webhook-id", self.id);
        headers.insert("webhook-timestamp", self.timestamp);
        headers.insert("webhook-signature", self.signature);
    }
}

fn one(id: &str, now: Timestamp, body: &[u8], secret: &Secret) -> Result<String, SigningFailed> {
    let unusable = || SigningFailed::Secret(SignError::NoUsableSecret);
    let scheme = builtin(KIND).ok_or_else(unusable)?;
    let headers = Headers::new();
    let input = SignInput {
        method: "POST",
        url: "",
        headers: &headers,
        body,
        now,
        id,
    };
    let signed = sign(scheme, secret, &input).map_err(SigningFailed::Secret)?;
    let signature = signed.headers.first("webhook-signature");
    signature.map(str::to_owned).ok_or_else(unusable)
}
