//! Realistic requests to try a source with.

use serde_json::{Value, json};

use crate::Timestamp;
use crate::json::JsonPath;
use crate::location::{Location, ValueRule};
use crate::request::Headers;
use crate::scheme::Scheme;
use crate::sign::set;

/// A request without its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Headers the provider sends beside the signature.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
    /// The event type it is of.
    pub event_type: String,
}

/// A sample of `kind`, with `id` as the event's id. Kinds without a sample of their own get a small
/// document with id, type and time where the scheme reads them.
#[must_use]
pub fn sample(
    kind: &str,
    scheme: &Scheme,
    event_type: Option<&str>,
    id: &str,
    now: Timestamp,
) -> Sample {
    let event_type = event_type.unwrap_or_else(|| usual_type(kind)).to_owned();
    let mut headers = Headers::new();
    if kind == "twilio" {
        headers.push("Content-Type", "application/x-www-form-urlencoded");
        let body = format!("MessageSid={id}&MessageStatus={event_type}&From=%2B15005550006");
        return Sample {
            headers,
            body: body.into_bytes(),
            event_type,
        };
    }
    if matches!(kind, "paddle-classic" | "mandrill" | "braintree") {
        headers.push("Content-Type", "application/x-www-form-urlencoded");
        let body = form_body(kind, id, &event_type, now);
        return Sample {
            headers,
            body,
            event_type,
        };
    }
    let mut body = document(kind, now);
    let values = [
        (&scheme.event.id, json!(id)),
        (&scheme.event.event_type, json!(event_type)),
    ];
    for (rule, value) in values {
        for (at, value) in spread(rule.as_ref(), &value) {
            match at {
                Location::Body(path) if !path.has_wildcard() => set(&mut body, path.steps(), value),
                Location::Header(names) if headers.first(&names[0]).is_none() => {
                    headers.push(&names[0], text(&value));
                }
                Location::OtherKey(known) => {
                    body[known.as_str()] = json!(1);
                    body[text(&value)] = json!({});
                }
                _ => {}
            }
        }
    }
    fill_time(scheme, now, &mut body, &mut headers);
    if let Some(path) = scheme.token.as_ref().and_then(|rule| rule.each.as_ref()) {
        fill_list(path, &mut body);
    }
    headers.push("Content-Type", "application/json");
    Sample {
        headers,
        body: body.to_string().into_bytes(),
        event_type,
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The value for each place of a rule; a joined type such as `a.b` is taken apart again.
fn spread<'r>(rule: Option<&'r ValueRule>, value: &Value) -> Vec<(&'r Location, Value)> {
    match rule {
        None => Vec::new(),
        Some(ValueRule::At(at)) => vec![(at, value.clone())],
        Some(ValueRule::Join(rule)) => {
            let whole = text(value);
            let mut parts = whole.splitn(rule.parts.len(), rule.join.as_str());
            let places = rule.parts.iter();
            places
                .map(|part| (&part.at, json!(parts.next().unwrap_or("sample"))))
                .collect()
        }
    }
}

fn fill_time(scheme: &Scheme, now: Timestamp, body: &mut Value, headers: &mut Headers) {
    for at in scheme.event.time.iter().flat_map(ValueRule::locations) {
        match at {
            Location::Body(path) if crate::json::pick_one(&body.to_string(), path).is_none() => {
                set(body, path.steps(), json!(rfc3339(now)));
            }
            Location::Header(names) => {
                let own = scheme
                    .timestamp
                    .as_ref()
                    .is_some_and(|rule| rule.from == *at);
                if !own && headers.first(&names[0]).is_none() {
                    headers.push(&names[0], rfc3339(now));
                }
            }
            _ => {}
        }
    }
}

fn fill_list(path: &JsonPath, body: &mut Value) {
    if crate::json::pick_each(&body.to_string(), path).is_empty() {
        set(body, path.steps(), json!({ "id": "sample" }));
    }
}

fn rfc3339(now: Timestamp) -> String {
    let utc = now.to_offset(time::UtcOffset::UTC);
    let (date, hour, minute, second) = (utc.date(), utc.hour(), utc.minute(), utc.second());
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

fn usual_type(kind: &str) -> &'static str {
    match kind {
        "stripe" => "invoice.paid",
        "github" => "push",
        "shopify" => "orders/create",
        "slack" => "message",
        "twilio" => "delivered",
        "gitlab" | "gitlab-signing-token" => "Push Hook",
        "linear" => "Issue",
        "discord" => "2",
        "paypal" => "PAYMENT.SALE.COMPLETED",
        "adyen" => "AUTHORISATION",
        "square" => "payment.created",
        "zoom" => "meeting.started",
        "clerk" => "user.created",
        "meta" => "page",
        "telegram" => "message",
        "twitch" => "channel.follow",
        "gocardless" => "payments.confirmed",
        "mandrill" => "send",
        "braintree" => "subscription_charged_successfully",
        _ => "example.created",
    }
}

/// The part of the body that is not id, type and time.
fn document(kind: &str, now: Timestamp) -> Value {
    let seconds = now.unix_timestamp();
    match kind {
        "stripe" => json!({
            "object": "event", "api_version": "2025-09-30.clover", "created": seconds,
            "livemode": false, "pending_webhooks": 1,
            "data": { "object": { "id": "in_1Sample", "object": "invoice", "amount_paid": 4200,
                "currency": "eur", "customer": "cus_Sample", "status": "paid" } },
        }),
        "github" => json!({
            "ref": "refs/heads/main", "before": "0".repeat(40), "after": "1".repeat(40),
            "repository": { "id": 1, "full_name": "acme/widgets", "private": true },
            "pusher": { "name": "acme-bot" },
            "commits": [{ "id": "1".repeat(40), "message": "Add widgets" }],
        }),
        "shopify" => json!({
            "id": 820_982_911, "email": "sample@example.com", "currency": "EUR",
            "total_price": "42.00", "line_items": [{ "title": "Widget", "quantity": 1 }],
        }),
        "slack" => json!({
            "type": "event_callback", "team_id": "T0SAMPLE", "api_app_id": "A0SAMPLE",
            "event": { "channel": "C0SAMPLE", "user": "U0SAMPLE", "text": "hello" },
            "event_time": seconds,
        }),
        "linear" => json!({ "action": "update", "data": { "id": "sample", "title": "Try it" } }),
        "adyen" => json!({ "live": "false", "notificationItems": [{ "NotificationRequestItem": {
            "additionalData": {}, "amount": { "currency": "EUR", "value": 4200 },
            "merchantAccountCode": "SampleMerchant", "merchantReference": "order-1",
            "success": "true" } }] }),
        "microsoft-graph" => json!({ "value": [{ "subscriptionId": "sample",
            "resource": "users/1/messages/2", "tenantId": "sample" }] }),
        "dropbox-sign" => json!({ "event": { "event_time": seconds.to_string() } }),
        _ => json!({ "data": { "object": "sample", "amount": 4200, "currency": "eur" } }),
    }
}

fn form_body(kind: &str, id: &str, event_type: &str, now: Timestamp) -> Vec<u8> {
    let escape = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    match kind {
        "mandrill" => {
            let events = json!([{ "event": event_type, "_id": id, "ts": now.unix_timestamp() }]);
            format!("mandrill_events={}", escape(&events.to_string())).into_bytes()
        }
        // Signing wraps the document into the form.
        "braintree" => format!(
            "<notification><timestamp>{}</timestamp><kind>{event_type}</kind></notification>",
            rfc3339(now)
        )
        .into_bytes(),
        _ => format!("alert_id={}&alert_name={}", escape(id), escape(event_type)).into_bytes(),
    }
}
