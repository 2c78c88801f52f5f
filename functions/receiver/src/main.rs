//! The receiver Lambda: reads its configuration, builds its clients once, and runs.

use hookstead_aws::Aws;
use hookstead_aws::queue::SqsQueue;
use hookstead_receiver::config::Config;
use hookstead_receiver::{Clock, Limits, Receiver, http_api, logs};
use hookstead_secrets::LocalSecrets;
use lambda_runtime::{Error, LambdaEvent, service_fn};

/// An execution environment serves one request at a time.
const REQUESTS_AT_ONCE: usize = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let config = Config::read(|name| std::env::var(name).ok())?;
    let secrets = LocalSecrets::new(&config.secrets_dir);
    let connections = config.connections(REQUESTS_AT_ONCE)?;
    let limits = Limits::from_config(&config);
    let mut receiver = Receiver::new(connections, secrets, Clock::system(), limits, config.region);
    if let Some(url) = config.queue_url {
        receiver = receiver.with_kick(SqsQueue::new(&Aws::from_env()?, url));
    }
    let receiver = &receiver;
    lambda_runtime::run(service_fn(
        move |event: LambdaEvent<http_api::HttpApiEvent>| async move {
            Ok::<_, Error>(http_api::answer(receiver, event.payload).await)
        },
    ))
    .await
}
