//! A worker as a Lambda function.

use std::time::SystemTime;

use hookstead_domain::Timestamp;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use tokio::time::Instant;

use crate::sqs_event::{SqsAnswer, SqsEvent, time_left};
use crate::worker::Worker;

/// Serves invocations until the environment is shut down.
///
/// # Errors
///
/// Where the runtime cannot be reached. An invocation fails as a whole only where a
/// message has no id.
pub async fn run(worker: Worker) -> Result<(), Error> {
    let worker = &worker;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        // Lambda says when it ends by the time of day, so that is what it is compared with.
        let now = Timestamp::from(SystemTime::now());
        let deadline = Instant::now() + time_left(event.context.deadline(), now);
        let records = event.payload.into_records()?;
        Ok::<_, Error>(SqsAnswer::from(worker.process_by(records, deadline).await))
    }))
    .await
}
