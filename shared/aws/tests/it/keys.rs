//! Keys, and secrets sealed with them.

mod conformance;
mod file;
mod kms;
mod sealer;

use hookstead_aws::keys::generate_secret;
use hookstead_domain::SubscriptionId;
use uuid::Uuid;

/// The subscription of this number.
fn subscription(number: u128) -> SubscriptionId {
    SubscriptionId::from_uuid(Uuid::from_u128(number))
}

#[test]
fn a_new_secret_is_one_of_standard_webhooks_and_no_two_are_equal() {
    let first = generate_secret().unwrap();
    let scheme = hookstead_signing::builtin("standard-webhooks").unwrap();
    hookstead_signing::import_secret(scheme, first.expose()).unwrap();
    let text = first.expose().strip_prefix("whsec_").unwrap();
    // 32 bytes in base64.
    assert_eq!(text.len(), 44);
    assert_ne!(first.expose(), generate_secret().unwrap().expose());
}
