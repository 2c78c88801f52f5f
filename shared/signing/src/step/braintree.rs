//! Braintree: one signature per public key over the base64 payload of the form.

use crate::form;
use crate::location::Location;
use crate::plan::{Bit, Plan, PlanGroup, Signature};
use crate::reason::Reason;
use crate::scheme::SignatureRule;
use crate::view::View;

pub(crate) fn plan<'a>(
    view: &View<'a>,
    rule: &'a SignatureRule,
    mut plan: Plan<'a>,
) -> Result<Plan<'a>, Reason> {
    let field = |name: &str| form::value(view.signed_body(), name).filter(|text| !text.is_empty());
    let Some(Location::Form(name)) = rule.from.first() else {
        return Err(Reason::MissingSignature);
    };
    let signatures = field(name).ok_or(Reason::MissingSignature)?;
    let payload = field("bt_payload").ok_or_else(|| Reason::MissingField("bt_payload".into()))?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+=/\n".contains(&byte);
    if !payload.bytes().all(allowed) {
        return Err(Reason::MalformedBody);
    }
    let mut group = PlanGroup::default();
    for pair in signatures.split('&') {
        if group.signatures.len() == rule.max {
            return Err(Reason::TooManySignatures);
        }
        // Of two pairs for one key the first counts.
        if let Some((owner, text)) = pair.split_once('|')
            && !group
                .signatures
                .iter()
                .any(|other| other.owner.as_deref() == Some(owner))
        {
            group.signatures.push(Signature {
                text: text.to_owned(),
                owner: Some(owner.to_owned()),
            });
        }
    }
    if group.signatures.is_empty() {
        return Err(Reason::MalformedSignature);
    }
    // Some stacks strip the last line feed of a form value; the sender signed it.
    let with_line_feed = format!("{payload}\n");
    for text in [payload, with_line_feed] {
        group
            .contents
            .push(vec![Bit::new("form:bt_payload", text.into_bytes())]);
    }
    plan.groups.push(group);
    Ok(plan)
}
