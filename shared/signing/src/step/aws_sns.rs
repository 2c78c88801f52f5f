//! Amazon SNS: a list of fields that depends on the message type.

use crate::algorithm::Algorithm;
use crate::plan::{Bit, Plan, PlanGroup};
use crate::reason::Reason;
use crate::scheme::SignatureRule;
use crate::step::certificate::{is_sns, trusted};
use crate::view::{View, member_path};

const NOTIFICATION: &[&str] = &[
    "Message",
    "MessageId",
    "Subject",
    "Timestamp",
    "TopicArn",
    "Type",
];
const CONFIRMATION: &[&str] = &[
    "Message",
    "MessageId",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
];

pub(crate) fn plan<'a>(
    view: &View<'a>,
    rule: &'a SignatureRule,
    mut plan: Plan<'a>,
) -> Result<Plan<'a>, Reason> {
    let json = view.json().ok_or(Reason::MalformedBody)?;
    let field = |name: &str| {
        let path = member_path(name)?;
        crate::json::pick_one(json, &path).and_then(crate::json::scalar)
    };
    let at = rule.from.first().ok_or(Reason::MissingSignature)?;
    let signature = view.text(at).ok_or(Reason::MissingSignature)?;
    plan.algorithm = match field("SignatureVersion").as_deref() {
        Some("1") => Algorithm::RsaSha1,
        Some("2") => Algorithm::RsaSha256,
        _ => return Err(Reason::UnsupportedAlgorithm),
    };
    trusted(view, "body:$.SigningCertURL", is_sns)?;
    let names = match field("Type").as_deref() {
        Some("Notification") => NOTIFICATION,
        Some("SubscriptionConfirmation" | "UnsubscribeConfirmation") => CONFIRMATION,
        _ => return Err(Reason::UnexpectedValue("Type".into())),
    };
    let content = names
        .iter()
        .filter_map(|name| {
            let value = field(name)?;
            Some(Bit::new(*name, format!("{name}\n{value}\n").into_bytes()))
        })
        .collect();
    plan.guard = field("TopicArn").map(|arn| ("topic_arn", arn));
    let ts = field("Timestamp");
    plan.groups.push(PlanGroup {
        ts,
        signatures: vec![signature.into()],
        contents: vec![content],
        member: None,
    });
    Ok(plan)
}
