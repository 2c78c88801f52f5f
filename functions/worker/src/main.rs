//! The worker Lambda: reads its configuration, builds its clients once, and runs.

use hookstead_worker::config::Config;
use hookstead_worker::handler::Handlers;
use hookstead_worker::{lambda, logs};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let config = Config::read(|name| std::env::var(name).ok())?;
    let worker = config.worker(Handlers::new())?;
    lambda::run(worker).await
}
