//! Keys of KMS.

use std::error::Error;
use std::fmt;

use aws_sdk_kms::Client;
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::DataKeySpec;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use zeroize::Zeroizing;

use super::{DataKey, DataKeys, KeyError, KeyFuture, PlainKey};
use crate::Aws;
use crate::call::{CallFailure, FailureKind};

/// The encryption context of every data key: seen in CloudTrail, and a condition of key
/// policies. What binds a secret to its row is in the format, not here, because one data
/// key seals many.
const CONTEXT: (&str, &str) = ("hookstead:purpose", "subscription-secret");

/// A symmetric key of KMS, by id, ARN or alias.
///
/// What was wrapped by another key of KMS is unwrapped as well, by the ARN that stands
/// beside it, as long as this process may use that key.
#[derive(Clone)]
pub struct KmsKeys {
    client: Client,
    key_id: String,
}

impl KmsKeys {
    /// The key that wraps new data keys. Nothing is called yet.
    #[must_use]
    pub fn new(aws: &Aws, key_id: impl Into<String>) -> Self {
        Self {
            client: Client::new(aws.config()),
            key_id: key_id.into(),
        }
    }

    /// The key that wraps new data keys, as it was named.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    async fn generate_key(&self) -> Result<DataKey, KeyError> {
        let call = self
            .client
            .generate_data_key()
            .key_id(&self.key_id)
            .key_spec(DataKeySpec::Aes256)
            .encryption_context(CONTEXT.0, CONTEXT.1);
        let answer = call.send().await.map_err(|error| failed(&error))?;
        let plain = plain_key(answer.plaintext)?;
        match (answer.ciphertext_blob, answer.key_id) {
            (Some(wrapped), Some(key_id)) => Ok(DataKey {
                plain,
                wrapped: wrapped.into_inner(),
                // The ARN, also where the key was named by an alias: an alias moves.
                key_id,
            }),
            _ => Err(invalid_answer()),
        }
    }

    async fn decrypt_key(&self, wrapped: &[u8], key_id: &str) -> Result<PlainKey, KeyError> {
        let call = self
            .client
            .decrypt()
            .key_id(key_id)
            .ciphertext_blob(Blob::new(wrapped))
            .encryption_context(CONTEXT.0, CONTEXT.1);
        let answer = call.send().await.map_err(|error| failed(&error))?;
        plain_key(answer.plaintext)
    }
}

/// Takes the key out of the answer, whose bytes are wiped. The SDK's own copies are
/// out of reach.
fn plain_key(plaintext: Option<Blob>) -> Result<PlainKey, KeyError> {
    let bytes = Zeroizing::new(plaintext.map(Blob::into_inner).unwrap_or_default());
    PlainKey::from_slice(&bytes).ok_or_else(invalid_answer)
}

fn invalid_answer() -> KeyError {
    KeyError::Unavailable {
        code: "invalid_answer".to_owned(),
        cause: None,
    }
}

fn failed<E>(error: &SdkError<E, HttpResponse>) -> KeyError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let CallFailure { kind, code, cause } = CallFailure::of(error);
    match kind {
        FailureKind::Missing => KeyError::Missing { code, cause },
        FailureKind::Denied => KeyError::Denied { code, cause },
        FailureKind::Throttled => KeyError::Throttled { code, cause },
        FailureKind::Unavailable | FailureKind::TimedOut => KeyError::Unavailable { code, cause },
        FailureKind::Refused => KeyError::Refused { code, cause },
    }
}

impl DataKeys for KmsKeys {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        Box::pin(self.generate_key())
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey> {
        Box::pin(self.decrypt_key(wrapped, key_id))
    }
}

impl fmt::Debug for KmsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KmsKeys")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}
