//! Signatures: fresh for each attempt, and of every live secret.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hookstead_domain::{DeliveryId, EventId, LeaseId, SourceId, SubscriptionId};
use hookstead_egress::{Egress, EgressSettings};
use hookstead_store::delivering::{ClaimedEvent, ClaimedSubscription, SealedSecret};
use hookstead_worker::destinations::HttpDestination;
use hookstead_worker::{Attempt, DatabaseClock, Destination as _};
use sha2::Sha256;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::world::{Consumer, PlainSecrets, Request, SECRET};

/// Whether a request carries a signature of this secret, reckoned here from the standard's text.
pub(crate) fn is_signed_by(request: &Request, secret: &str) -> bool {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let (id, timestamp) = (
        &request.headers["webhook-id"],
        &request.headers["webhook-timestamp"],
    );
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let mut signatures = request.headers["webhook-signature"].split(' ');
    signatures.any(|signature| signature == expected)
}

/// An attempt at a consumer, made at `now`.
fn attempt(consumer: &Consumer, number: u32, now: OffsetDateTime) -> Attempt {
    let id = Uuid::from_u128(7);
    let secret = |text: &str| SealedSecret {
        bytes: text.as_bytes().to_vec(),
        key_id: "test".to_owned(),
    };
    let received_at = OffsetDateTime::UNIX_EPOCH;
    Attempt {
        delivery_id: DeliveryId::from_uuid(id),
        round: 1,
        number,
        lease_id: LeaseId::from_uuid(Uuid::from_u128(u128::from(number) << 96)),
        event: ClaimedEvent {
            event_id: EventId::from_uuid(id),
            source_id: SourceId::from_uuid(id),
            source_name: "stripe-main".parse().unwrap(),
            source_kind: "stripe".to_owned(),
            report_event_type: false,
            external_event_id: "evt_1".to_owned(),
            event_type: "invoice.paid".to_owned(),
            tenant: None,
            schema_version: "1".to_owned(),
            content_type: Some("application/json".to_owned()),
            raw_body: b"{}".to_vec(),
            occurred_at: None,
            received_at,
            cause_event_id: None,
        },
        subscription: ClaimedSubscription {
            subscription_id: SubscriptionId::from_uuid(id),
            name: "shop".to_owned(),
            destination: consumer.destination("shop"),
            secret_current: Some(secret(SECRET)),
            secret_previous: Some(secret(OLD_SECRET)),
            previous_until: Some(received_at + time::Duration::minutes(10)),
        },
        clock: DatabaseClock::new(now, tokio::time::Instant::now()),
        time_limit: Duration::from_secs(60),
    }
}

const OLD_SECRET: &str = "whsec_b2xkLXNlY3JldC1vZi1zdWJzY3JpcHRpb25zIQ==";

pub(crate) fn http() -> HttpDestination {
    let egress = Egress::new(EgressSettings {
        allowed: "127.0.0.0/8".parse().unwrap(),
        ..EgressSettings::default()
    });
    HttpDestination::new(egress.unwrap(), Arc::new(PlainSecrets))
}

#[tokio::test]
async fn out_01_every_attempt_is_signed_afresh() {
    let consumer = Consumer::answering(200).await;
    let http = http();
    let later = OffsetDateTime::UNIX_EPOCH + time::Duration::minutes(20);
    http.attempt(attempt(&consumer, 1, OffsetDateTime::UNIX_EPOCH))
        .await;
    http.attempt(attempt(&consumer, 4, later)).await;
    let requests = consumer.requests();
    assert_eq!(
        requests[0].headers["webhook-id"],
        requests[1].headers["webhook-id"]
    );
    assert_eq!(requests[0].body, requests[1].body);
    let signed_at: Vec<i64> = requests
        .iter()
        .map(|request| request.headers["webhook-timestamp"].parse().unwrap())
        .collect();
    assert!((0..5).contains(&signed_at[0]), "{signed_at:?}");
    assert!((1200..1205).contains(&signed_at[1]), "{signed_at:?}");
    assert!(requests.iter().all(|request| is_signed_by(request, SECRET)));
    assert_eq!(requests[1].headers["hookstead-attempt"], "4");
    let (first, second) = (
        &requests[0].headers["traceparent"],
        &requests[1].headers["traceparent"],
    );
    assert_eq!(first[..36], second[..36], "one trace");
    assert_ne!(first, second, "a span for each attempt");
}

#[tokio::test]
async fn two_secrets_sign_while_they_overlap_and_one_afterwards() {
    let consumer = Consumer::answering(200).await;
    let http = http();
    for minutes in [9, 10] {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::minutes(minutes);
        http.attempt(attempt(&consumer, 1, now)).await;
    }
    let signatures: Vec<_> = consumer
        .requests()
        .iter()
        .map(|request| {
            (
                is_signed_by(request, SECRET),
                is_signed_by(request, OLD_SECRET),
            )
        })
        .collect();
    assert_eq!(signatures, [(true, true), (true, false)]);
}
