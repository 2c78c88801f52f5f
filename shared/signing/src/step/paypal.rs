//! PayPal: the algorithm comes from a header, the certificate's URL must be PayPal's.

use crate::algorithm::Algorithm;
use crate::reason::Reason;
use crate::step::certificate::{is_paypal, trusted};
use crate::view::View;

pub(crate) fn algorithm(view: &View<'_>) -> Result<Algorithm, Reason> {
    trusted(view, "header:PAYPAL-CERT-URL", is_paypal)?;
    match view.request.headers.first("PAYPAL-AUTH-ALGO") {
        Some("SHA256withRSA") => Ok(Algorithm::RsaSha256),
        Some("SHA1withRSA") => Ok(Algorithm::RsaSha1),
        Some(_) => Err(Reason::UnsupportedAlgorithm),
        None => Err(Reason::MissingField("header:PAYPAL-AUTH-ALGO".into())),
    }
}
