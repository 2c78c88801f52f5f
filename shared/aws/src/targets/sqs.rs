//! Queues of SQS.

use std::fmt;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::types::MessageAttributeValue;

use super::{Target, TargetFailure, TargetFuture, TargetMessage, TargetReceipt, structured};
use crate::Aws;
use crate::client::timeouts;
use crate::queue::{MAX_BODY_BYTES, is_allowed};

/// Attributes of one message: SQS's limit.
pub const MAX_ATTRIBUTES: usize = 10;

/// The type of all our attributes.
const STRING: &str = "String";

/// A queue of SQS: a standard one, also of another region or account.
///
/// A body that SQS takes as text is the message's body, as it was received, with the
/// envelope in message attributes named `ce-id`, `ce-type` and so on, and the content
/// type in `content-type`: CloudEvents' binary mode. Any other body is sent as
/// [`structured`] makes it, with `content-type` `application/cloudevents+json`.
#[derive(Clone)]
pub struct SqsTarget {
    client: Client,
    url: String,
}

impl SqsTarget {
    /// The queue of this URL. Nothing is called yet.
    #[must_use]
    pub fn new(aws: &Aws, queue_url: impl Into<String>) -> Self {
        let url = queue_url.into();
        let aws = match region(&url) {
            Some(region) => aws.in_region(region),
            None => aws.clone(),
        };
        Self {
            client: Client::new(aws.tried_once().config()),
            url,
        }
    }

    async fn send_within(
        &self,
        message: &TargetMessage<'_>,
        timeout: Duration,
    ) -> Result<TargetReceipt, TargetFailure> {
        let Shape { body, attributes } = shape(message);
        let bytes = attributes
            .iter()
            .map(|(name, value)| name.len() + STRING.len() + value.len());
        if body.len() + bytes.sum::<usize>() > MAX_BODY_BYTES {
            return Err(TargetFailure::refused("message_too_large"));
        }
        let mut call = self
            .client
            .send_message()
            .queue_url(&self.url)
            .message_body(body);
        for (name, value) in attributes {
            let value = MessageAttributeValue::builder()
                .data_type(STRING)
                .string_value(value)
                .build()
                .expect("a type is all that a value needs");
            call = call.message_attributes(name, value);
        }
        let limits = Builder::new().timeout_config(timeouts(timeout, timeout));
        match call.customize().config_override(limits).send().await {
            Ok(answer) => Ok(TargetReceipt {
                request_id: answer.message_id.unwrap_or_default(),
            }),
            Err(error) => Err(TargetFailure::of_call(&error)),
        }
    }
}

struct Shape {
    body: String,
    attributes: Vec<(String, String)>,
}

fn shape(message: &TargetMessage<'_>) -> Shape {
    let text = std::str::from_utf8(message.body);
    let text = text.ok().filter(|text| is_text(text));
    let Some(text) = text else {
        return Shape {
            body: structured(message),
            attributes: vec![(
                "content-type".to_owned(),
                "application/cloudevents+json".to_owned(),
            )],
        };
    };
    let content_type = message
        .content_type
        .map(|value| ("content-type".to_owned(), value.to_owned()));
    let envelope = message
        .attributes
        .iter()
        .map(|attribute| (attribute.header_name(), attribute.header_value()));
    // An envelope that grows beyond what SQS takes loses its last attributes here, never
    // the content type.
    let attributes = content_type.into_iter().chain(envelope);
    let attributes = attributes.filter(|(_, value)| is_text(value));
    Shape {
        body: text.to_owned(),
        attributes: attributes.take(MAX_ATTRIBUTES).collect(),
    }
}

/// Whether SQS takes this as a body or a value.
fn is_text(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_allowed)
}

/// The region that a queue's URL names, `https://sqs.REGION.amazonaws.com/…`.
fn region(url: &str) -> Option<&str> {
    let host = url.split("://").nth(1)?.split('/').next()?;
    let (region, rest) = host.strip_prefix("sqs.")?.split_once('.')?;
    // Nothing else becomes part of an address.
    let named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let plain = !region.is_empty() && region.bytes().all(named);
    (plain && rest.starts_with("amazonaws.com")).then_some(region)
}

impl fmt::Debug for SqsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsTarget")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Target for SqsTarget {
    fn send<'a>(&'a self, message: &'a TargetMessage<'a>, timeout: Duration) -> TargetFuture<'a> {
        Box::pin(self.send_within(message, timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_called_in_the_region_of_its_url() {
        let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";
        assert_eq!(region(url), Some("eu-central-1"));
        let china = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders";
        assert_eq!(region(china), Some("cn-north-1"));
        assert_eq!(region("http://127.0.0.1:9324/000000000000/orders"), None);
        assert_eq!(region("sqs.eu-central-1.example.com"), None);
        let odd = "https://sqs.x@2130706433#.amazonaws.com/1/orders";
        assert_eq!(region(odd), None, "it would become part of an address");
    }
}
