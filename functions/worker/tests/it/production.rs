//! The worker as its own binary builds it, from variables.

use hookstead_aws::keys::{KeyFile, Sealer, generate_secret};
use hookstead_domain::SubscriptionId;
use hookstead_testkit::role;
use hookstead_worker::config::Config;
use hookstead_worker::handler::Handlers;

use crate::signatures::is_signed_by;
use crate::world::{Consumer, World};

#[tokio::test]
async fn a_configured_worker_delivers_with_secrets_from_its_key_file() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    let subscription = world.subscribe_http("shop", &consumer).await;
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys"));
    keys.create_if_missing().unwrap();
    let path = keys.path().to_str().unwrap().to_owned();
    let secret = generate_secret().unwrap();
    let sealed = Sealer::new(keys);
    let sealed = sealed
        .seal(&secret, SubscriptionId::from_uuid(subscription))
        .await
        .unwrap();
    let mut connection = world.database.connect().await;
    sqlx::query("update hookstead.subscriptions set secret_current = $1, secret_current_key = $2")
        .bind(sealed.bytes)
        .bind(sealed.key_id)
        .execute(&mut connection)
        .await
        .unwrap();
    let config = Config::read(|name| match name {
        "HOOKSTEAD_DATABASE_URL" => Some(world.database.url_as(role::WORKER)),
        "HOOKSTEAD_KEY_FILE" => Some(path.clone()),
        "HOOKSTEAD_ALLOW_PRIVATE" => Some("127.0.0.0/8".to_owned()),
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        _ => None,
    });
    let worker = config.unwrap().worker(Handlers::new()).unwrap();
    world.event(b"{}").await;
    world.work(&worker).await;
    let row = world.only().await;
    assert_eq!(
        row.state,
        "succeeded",
        "{:?}",
        world.attempts(row.delivery_id).await
    );
    assert!(is_signed_by(&consumer.requests()[0], secret.expose()));
    let told = "select count(*) from hookstead.attempts where region = 'eu-west-1'";
    assert_eq!(world.number(told).await, 1);
}
