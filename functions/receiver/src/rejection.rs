//! The log line of a refused request.
//!
//! It says enough to tell a wrong secret from a changed body and a slow clock,
//! and holds nothing that the sender wrote but the media type.

use hookstead_domain::ErrorCode;
use sha2::{Digest, Sha256};

use crate::body::media_type;
use crate::request::InboundRequest;

/// Logs why a request was refused.
pub(crate) fn log(
    source_name: &str,
    request: &InboundRequest,
    code: ErrorCode,
    rejection: Option<&hookstead_signing::Rejection>,
) {
    let reason = rejection.map_or(code.as_str(), |rejection| rejection.reason.code());
    let versions = rejection.map_or_else(String::new, |r| r.labels_tried.join(","));
    tracing::warn!(
        source.name = source_name,
        error.code = code.as_str(),
        rejection.reason = reason,
        rejection.skew_s = rejection.and_then(|r| r.skew_s),
        rejection.secret_versions = versions,
        body.length = request.body.len(),
        body.sha256 = hex::encode(Sha256::digest(&request.body)),
        body.media_type = media_type(&request.headers).unwrap_or_default(),
        "a request was refused"
    );
}

/// Logs that a request was refused before it was known whose it is. Its path is the
/// sender's text and may hold a token, so it is not shown.
pub(crate) fn log_unrouted(request: &InboundRequest, code: ErrorCode) {
    tracing::info!(
        error.code = code.as_str(),
        body.length = request.body.len(),
        body.media_type = media_type(&request.headers).unwrap_or_default(),
        "a request was refused before its source was known"
    );
}
