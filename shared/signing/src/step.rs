//! Named procedures for what a template cannot express, one provider or rewriting each.

pub(crate) mod aws_sns;
pub(crate) mod body;
pub(crate) mod braintree;
pub(crate) mod certificate;
pub(crate) mod contentful;
pub(crate) mod form;
pub(crate) mod paypal;
pub(crate) mod twilio;
