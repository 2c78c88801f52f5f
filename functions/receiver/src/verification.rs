//! Deciding whose request this is: handshakes, signatures, secrets.

use std::sync::Arc;

use hookstead_domain::ErrorCode;
use hookstead_secrets::{FetchError, Offered, SecretProvider, SecretVersion};
use hookstead_signing::{
    Candidate, FollowUp, Handshake, Reason, Rejection, Request, Secret, Verified,
};
use time::OffsetDateTime;

use crate::answer::Answer;
use crate::receiver::{Call, Receiver};

impl<P: SecretProvider> Receiver<P> {
    /// Answers a handshake; a signed one only where its signature is right. `None`
    /// where this is no handshake, or one that is an event as well.
    pub(crate) async fn handshake(
        &self,
        call: &Call<'_>,
        request: &Request<'_>,
        versions: &[SecretVersion],
    ) -> Result<Option<Answer>, ErrorCode> {
        let candidates = candidates(versions, call.now);
        let answer = match hookstead_signing::handshake(call.scheme, request, &candidates, call.now)
        {
            Handshake::No => return Ok(None),
            Handshake::Answer(answer) => answer,
            Handshake::AnswerIfVerified(answer) => {
                self.verify(call, request, versions).await?;
                answer
            }
        };
        match &answer.follow_up {
            Some(FollowUp::StoreSecret(secret)) => self.keep_secret(call, secret).await?,
            // Confirming means fetching the address in the body. It is stored like an
            // event, so that whoever runs this can read the address and decide.
            Some(FollowUp::ConfirmSubscription { .. }) => return Ok(None),
            _ => {}
        }
        tracing::info!(
            source.name = call.name(),
            answer.status = answer.status,
            "a handshake was answered"
        );
        Ok(Some(Answer::from(answer)))
    }

    /// Keeps the secret that a provider chose, where the source has none.
    async fn keep_secret(&self, call: &Call<'_>, secret: &Secret) -> Result<(), ErrorCode> {
        let reference = call.source.record.secret_ref.as_deref();
        let offered = match reference {
            Some(reference) => self.secrets.offer(reference, secret).await,
            None => Ok(Offered::NotSupported),
        };
        match offered {
            Ok(Offered::Kept) => {
                tracing::info!(
                    source.name = call.name(),
                    "the secret of a handshake was kept"
                );
                Ok(())
            }
            Ok(Offered::AlreadySet) => Err(call.refuse(ErrorCode::SecretAlreadySet, None)),
            Ok(Offered::NotSupported) => Err(call.refuse(ErrorCode::SecretUnavailable, None)),
            Err(error) => Err(secret_unavailable(call, &error)),
        }
    }

    /// Verifies with the live versions, and once more with newer ones where none matched.
    pub(crate) async fn verify(
        &self,
        call: &Call<'_>,
        request: &Request<'_>,
        versions: &[SecretVersion],
    ) -> Result<Verified, ErrorCode> {
        let tolerance_s = call.source.record.tolerance_s;
        let verify = |versions: &[SecretVersion]| {
            let candidates = candidates(versions, call.now);
            hookstead_signing::verify(call.scheme, request, &candidates, call.now, tolerance_s)
        };
        let rejection = match verify(versions) {
            Ok(verified) => return Ok(verified),
            Err(rejection) => rejection,
        };
        if rejection.reason.could_be_wrong_secret()
            && let Some(reference) = &call.source.record.secret_ref
            && let Some(newer) = self.secrets.get_newer(reference, call.now).await
        {
            return verify(&newer).map_err(|rejection| refused_signature(call, &rejection));
        }
        Err(refused_signature(call, &rejection))
    }

    /// The versions of the source's secret.
    pub(crate) async fn secret_versions(
        &self,
        call: &Call<'_>,
    ) -> Result<Arc<[SecretVersion]>, ErrorCode> {
        let Some(reference) = &call.source.record.secret_ref else {
            tracing::error!(source.name = call.name(), "the source has no secret");
            return Err(ErrorCode::SecretUnavailable);
        };
        let versions = self.secrets.get(reference, call.now).await;
        versions.map_err(|error| secret_unavailable(call, &error))
    }
}

fn candidates(versions: &[SecretVersion], now: OffsetDateTime) -> Vec<Candidate<'_>> {
    versions
        .iter()
        .filter(|version| version.is_live(now))
        .map(|version| Candidate {
            label: version.label.as_str(),
            secret: &version.secret,
        })
        .collect()
}

fn refused_signature(call: &Call<'_>, rejection: &Rejection) -> ErrorCode {
    let code = match rejection.reason {
        Reason::Stale | Reason::Future => ErrorCode::StaleSignature,
        _ => ErrorCode::InvalidSignature,
    };
    call.refuse(code, Some(rejection))
}

fn secret_unavailable(call: &Call<'_>, error: &FetchError) -> ErrorCode {
    tracing::error!(
        source.name = call.name(),
        error = error as &dyn std::error::Error,
        "the secret of a source cannot be used"
    );
    ErrorCode::SecretUnavailable
}
