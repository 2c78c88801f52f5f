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
    "SubscribeURL",
    "Timestamp",
    "TopicArn",
    "Type",
];
const CONFIRMATION: &[&str] = &[
    "Message",
    "MessageId",
    "Subject",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
];

/// Fields that every message has, and those that (un)subscriptions have as well.
const NEEDED: &[&str] = &["Message", "MessageId", "Timestamp", "TopicArn", "Type"];
const NEEDED_TO_CONFIRM: &[&str] = &["SubscribeURL", "Token"];

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
    let lists: &[&[&'static str]] = match field("Type").as_deref() {
        Some("Notification") => &[NOTIFICATION],
        Some("SubscriptionConfirmation") => &[CONFIRMATION],
        // Amazon's documentation lists the token here, its JavaScript validator leaves it out.
        Some("UnsubscribeConfirmation") => &[CONFIRMATION, NOTIFICATION],
        _ => return Err(Reason::UnexpectedValue("Type".into())),
    };
    let confirms = lists[0].contains(&"Token");
    let needed = NEEDED
        .iter()
        .chain(NEEDED_TO_CONFIRM.iter().filter(|_| confirms));
    for name in needed {
        field(name).ok_or_else(|| Reason::MissingField(format!("body:$.{name}")))?;
    }
    let content = |names: &&[&'static str]| {
        let bits = names.iter().filter_map(|name| {
            let value = field(name)?;
            Some(Bit::new(*name, format!("{name}\n{value}\n").into_bytes()))
        });
        bits.collect()
    };
    let contents = lists.iter().map(content).collect();
    plan.guard = field("TopicArn").map(|arn| ("topic_arn", arn));
    let ts = field("Timestamp");
    plan.groups.push(PlanGroup {
        ts,
        signatures: vec![signature.into()],
        contents,
        member: None,
    });
    Ok(plan)
}
