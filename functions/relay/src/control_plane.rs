//! The control plane, as the relay sees it. docs/control-plane.md is the contract.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookstead_domain::{RETRY_AFTER, retry_after};
use hookstead_egress::webhook::{SigningFailed, SigningSecrets, StandardSignature};
use hookstead_egress::{Egress, OutgoingRequest, SendFailure, TargetError};
use hookstead_secrets::{
    CacheLimits, FetchError, SecretCache, SecretProvider, SecretVersion, VersionLabel,
};
use http::{HeaderMap, HeaderValue, Method, header};
use time::OffsetDateTime;

use crate::hold::Hold;
use crate::report_batch::ReportBatch;

/// Longest that one batch may take, answer included. Longer answers count as lost.
pub const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait that the control plane can ask for with `Retry-After`: it may have its
/// hour of maintenance, and cannot park reports for a day.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Lines of JSON.
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// What we call ourselves.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Hookstead/", env!("CARGO_PKG_VERSION")));

/// Where reports go, and what they are signed with.
///
/// Debug output has neither the URL nor the secret.
pub struct ControlPlane {
    egress: Egress,
    url: String,
    allow_http: bool,
    secret_ref: String,
    secrets: SecretCache<Arc<dyn SecretProvider>>,
    pub(crate) hold: Hold,
}

/// The versions of the secret that sign now.
pub(crate) type Versions = Arc<[SecretVersion]>;

/// Why the control plane did not take a batch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShipError {
    #[error("there was no whole answer")]
    NoAnswer(#[source] SendFailure),
    #[error("it refuses the signature ({status}): check the secret on both sides")]
    Unauthorized { status: u16 },
    #[error("it is gone for good (410): configure another URL, or none to stop reporting")]
    Gone,
    #[error("it answered {status}")]
    Answered { status: u16 },
    #[error("the reports cannot be signed")]
    Signing(#[source] SigningFailed),
    #[error("the secret has no current version")]
    NoCurrentVersion,
}

impl ShipError {
    /// A word for logs.
    pub(crate) fn code(&self) -> Cow<'static, str> {
        match self {
            Self::NoAnswer(failure) => failure.class.as_str().into(),
            Self::Unauthorized { status } | Self::Answered { status } => {
                format!("status_{status}").into()
            }
            Self::Gone => "status_410".into(),
            Self::Signing(_) | Self::NoCurrentVersion => "secret_unusable".into(),
        }
    }

    /// Whether it may pass by itself.
    pub(crate) const fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
            Self::Answered { status } => matches!(status, 408 | 425 | 429 | 500..),
            _ => false,
        }
    }
}

/// A batch that was not taken.
pub(crate) struct NotTaken {
    pub(crate) error: ShipError,
    /// How long the control plane asks to be left alone.
    pub(crate) wait: Option<Duration>,
}

impl From<ShipError> for NotTaken {
    fn from(error: ShipError) -> Self {
        Self { error, wait: None }
    }
}

impl ControlPlane {
    /// The control plane at `url`, which must be https unless `allow_http`. `secret_ref`
    /// names a Standard Webhooks secret in `secrets`. Nothing is called yet.
    ///
    /// # Errors
    ///
    /// Where the URL may not be called.
    pub fn new(
        egress: Egress,
        url: impl Into<String>,
        allow_http: bool,
        secret_ref: impl Into<String>,
        secrets: Arc<dyn SecretProvider>,
    ) -> Result<Self, TargetError> {
        let url = url.into();
        egress.target(&url, allow_http)?;
        Ok(Self {
            egress,
            url,
            allow_http,
            secret_ref: secret_ref.into(),
            secrets: SecretCache::new(secrets, CacheLimits::default()),
            hold: Hold::default(),
        })
    }

    /// The versions of the secret, from memory while they are fresh.
    pub(crate) async fn versions(&self) -> Result<Versions, Arc<FetchError>> {
        self.secrets.get(&self.secret_ref, now()).await
    }

    /// Sends one batch. Only a 2xx says that it was taken.
    pub(crate) async fn post(
        &self,
        batch: &ReportBatch,
        versions: &[SecretVersion],
    ) -> Result<(), NotTaken> {
        let body = Bytes::copy_from_slice(&batch.body);
        let request = OutgoingRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers: headers(&batch.id(), &body, versions)?,
            body,
            deadline: POST_TIMEOUT,
            allow_http: self.allow_http,
        };
        let answer = self.egress.send(request).await;
        let answer = answer.map_err(ShipError::NoAnswer)?;
        let error = match answer.status {
            200..=299 => return Ok(()),
            status @ (401 | 403) => ShipError::Unauthorized { status },
            410 => ShipError::Gone,
            status => ShipError::Answered { status },
        };
        let wait = retry_after(answer.headers.all(RETRY_AFTER), now());
        Err(NotTaken {
            error,
            wait: wait.map(|wait| wait.min(MAX_RETRY_AFTER)),
        })
    }
}

fn headers(id: &str, body: &[u8], versions: &[SecretVersion]) -> Result<HeaderMap, ShipError> {
    let now = now();
    let of = |label| {
        let mut live = versions.iter().filter(|version| version.is_live(now));
        live.find(|version| version.label == label)
            .map(|version| &version.secret)
    };
    let secrets = SigningSecrets {
        current: of(VersionLabel::Current).ok_or(ShipError::NoCurrentVersion)?,
        previous: of(VersionLabel::Previous),
    };
    let signature = StandardSignature::sign(id, now, body, secrets).map_err(ShipError::Signing)?;
    let mut headers = HeaderMap::new();
    signature.put_into(&mut headers);
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    headers.insert(header::USER_AGENT, USER_AGENT);
    Ok(headers)
}

/// The machine's time: it dates signatures, which allow for minutes, and nothing else.
fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}
