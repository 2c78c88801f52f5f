//! KMS.

use std::sync::Arc;

use hookstead_aws::keys::{DataKeys as _, KeyError, KmsKeys, Sealed};
use serde_json::json;

use super::conformance::{Subject, conformance};
use crate::emulated;
use crate::stand_in::{Answer, StandIn};

struct Kms;

impl Subject for Kms {
    type Keys = Arc<KmsKeys>;

    async fn keys(&self) -> Self::Keys {
        let key = hookstead_testkit::aws().await.create_key().await;
        Arc::new(KmsKeys::new(&emulated().await, key))
    }

    async fn rotated(&self, _: &Self::Keys) -> Self::Keys {
        self.keys().await
    }

    /// The emulator's keys work on when they are disabled.
    async fn without_key(&self, _: &Self::Keys, sealed: Sealed) -> Sealed {
        let (arn, id) = sealed.key_id.rsplit_once('/').unwrap();
        let id: String = id.chars().rev().collect();
        Sealed {
            key_id: format!("{arn}/{id}"),
            ..sealed
        }
    }

    fn again(&self, keys: &Self::Keys) -> Self::Keys {
        Arc::clone(keys)
    }
}

conformance!(Kms);

async fn error_of(status: u16, code: &str) -> KeyError {
    let server = StandIn::saying([Answer::error(status, code)]).await;
    let keys = KmsKeys::new(&server.aws(), "alias/hookstead");
    let made = keys.generate().await.unwrap_err();
    let unwrapped = keys.unwrap_key(b"wrapped", "arn:key").await.unwrap_err();
    assert_eq!(
        std::mem::discriminant(&made),
        std::mem::discriminant(&unwrapped)
    );
    assert_eq!(made.code(), code);
    made
}

#[tokio::test]
async fn denied_throttled_unavailable_and_gone_are_told_apart() {
    for code in ["AccessDeniedException", "UnrecognizedClientException"] {
        let error = error_of(400, code).await;
        assert!(matches!(error, KeyError::Denied { .. }), "{code}");
        assert!(!error.is_transient());
    }
    let error = error_of(400, "ThrottlingException").await;
    assert!(matches!(error, KeyError::Throttled { .. }));
    assert!(error.is_transient());
    for (status, code) in [
        (500, "KMSInternalException"),
        (500, "KeyUnavailableException"),
        (503, "DependencyTimeoutException"),
    ] {
        let error = error_of(status, code).await;
        assert!(matches!(error, KeyError::Unavailable { .. }), "{code}");
        assert!(error.is_transient());
    }
    for (status, code) in [
        (400, "NotFoundException"),
        (409, "DisabledException"),
        (409, "KMSInvalidStateException"),
    ] {
        let error = error_of(status, code).await;
        assert!(matches!(error, KeyError::Missing { .. }), "{code}");
    }
    for code in ["IncorrectKeyException", "InvalidCiphertextException"] {
        let error = error_of(400, code).await;
        assert!(matches!(error, KeyError::Refused { .. }), "{code}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_kms_that_cannot_be_reached_is_unavailable() {
    let aws = StandIn::saying([Answer::HangUp]).await.aws();
    let error = KmsKeys::new(&aws, "key").generate().await.unwrap_err();
    assert!(matches!(error, KeyError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn every_call_names_its_purpose_and_unwrapping_names_the_key() {
    let answer = json!({ "Plaintext": "AAAA", "CiphertextBlob": "AAAA", "KeyId": "arn:key" });
    let server = StandIn::saying([Answer::ok(&answer)]).await;
    let keys = KmsKeys::new(&server.aws(), "alias/hookstead");
    // Three bytes are no key.
    for error in [
        keys.generate().await.unwrap_err(),
        keys.unwrap_key(b"wrapped", "arn:key").await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "invalid_answer");
    }
    let asked: Vec<_> = server.asked().iter().map(|asked| asked.json()).collect();
    for asked in &asked {
        let context = &asked["EncryptionContext"];
        assert_eq!(context["hookstead:purpose"], "subscription-secret");
    }
    assert_eq!(asked[0]["KeyId"], "alias/hookstead");
    assert_eq!(asked[1]["KeyId"], "arn:key");
}
