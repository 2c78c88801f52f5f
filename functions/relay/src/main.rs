//! The relay Lambda: reads its configuration, builds its clients once, and runs.

use hookstead_relay::config::Config;
use hookstead_relay::{lambda, logs};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::de::IgnoredAny;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let config = Config::read(|name| std::env::var(name).ok())?;
    let relay = &config.relay()?;
    // What the schedule sends says nothing.
    lambda_runtime::run(service_fn(
        move |event: LambdaEvent<IgnoredAny>| async move {
            lambda::run(relay, event.context.deadline()).await;
            Ok::<_, Error>(())
        },
    ))
    .await
}
