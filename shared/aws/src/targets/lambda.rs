//! Functions of Lambda.

use std::fmt;
use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use hookstead_domain::ErrorClass;

use super::{Target, TargetFailure, TargetFuture, TargetMessage, TargetReceipt, structured};
use crate::Aws;
use crate::client::timeouts;

/// Bytes of the payload of an invocation that is waited for: Lambda's limit, 6 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1_048_576;

/// A function, by name, name and alias, or ARN.
///
/// Its event is what [`structured`] makes. The invocation is waited for: a function that
/// fails, by an error of its own, a crash or its time limit, has not taken the event.
/// What it returns is not looked at.
#[derive(Clone)]
pub struct LambdaTarget {
    client: Client,
    function: String,
}

impl LambdaTarget {
    /// The function. Nothing is called yet.
    #[must_use]
    pub fn new(aws: &Aws, function: impl Into<String>) -> Self {
        Self {
            client: Client::new(aws.tried_once().config()),
            function: function.into(),
        }
    }

    async fn send_within(
        &self,
        message: &TargetMessage<'_>,
        timeout: Duration,
    ) -> Result<TargetReceipt, TargetFailure> {
        let payload = structured(message);
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(TargetFailure::refused("message_too_large"));
        }
        let limits = Builder::new().timeout_config(timeouts(timeout, timeout));
        let call = self
            .client
            .invoke()
            .function_name(&self.function)
            .invocation_type(InvocationType::RequestResponse)
            .payload(Blob::new(payload))
            .customize()
            .config_override(limits);
        let answer = match call.send().await {
            Ok(answer) => answer,
            Err(error) => return Err(TargetFailure::of_call(&error)),
        };
        // The answer is 200 also where the function failed.
        match answer.function_error() {
            Some("Handled") => Err(function_failed("function_error_handled")),
            Some(_) => Err(function_failed("function_error_unhandled")),
            None => Ok(TargetReceipt {
                request_id: answer.request_id().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// The function's own message stays where it is: it may quote the event.
fn function_failed(detail: &str) -> TargetFailure {
    TargetFailure::new(ErrorClass::TargetUnavailable, detail)
}

impl fmt::Debug for LambdaTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LambdaTarget")
            .field("function", &self.function)
            .finish_non_exhaustive()
    }
}

impl Target for LambdaTarget {
    fn send<'a>(&'a self, message: &'a TargetMessage<'a>, timeout: Duration) -> TargetFuture<'a> {
        Box::pin(self.send_within(message, timeout))
    }
}
