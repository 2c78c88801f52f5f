//! Signing secrets of subscriptions: which key seals them, making new ones.

use hookstead_aws::Aws;
use hookstead_aws::keys::{KeyError, KeyFile, KmsKeys, OpenError, Sealed, Sealer, generate_secret};
use hookstead_domain::SubscriptionId;
use hookstead_signing::Secret;
use hookstead_store::{NewSecret, Secretless};
use serde::Serialize;

use crate::chance;
use crate::database::{Database, given_url};
use crate::error::Error;
use crate::output::Table;
use crate::project::Project;

/// The variable that names a key of KMS.
const KMS_VARIABLE: &str = "HOOKSTEAD_KMS_KEY_ID";

/// The variable that names a file of keys.
const FILE_VARIABLE: &str = "HOOKSTEAD_KEY_FILE";

/// A secret that was issued just now. It is shown once and kept nowhere in the clear.
#[derive(Serialize)]
pub(crate) struct Issued {
    pub(crate) subscription: String,
    secret: String,
}

/// A secret for a subscription, sealed and in the clear.
pub(crate) struct Offer {
    pub(crate) sealed: NewSecret,
    secret: Secret,
}

impl Offer {
    /// What to show, once it is stored.
    pub(crate) fn into_issued(self) -> Issued {
        Issued {
            subscription: self.sealed.name,
            secret: self.secret.expose().to_owned(),
        }
    }
}

/// The key of this database's subscriptions: the one that the environment names, else for
/// the database of `dev` the file beside it. `None`: nobody named one.
pub(crate) fn sealer(project: &Project) -> Result<Option<Sealer>, Error> {
    if let Some(named) = named()? {
        return Ok(Some(named));
    }
    if given_url().is_some() && Database::of_running(project).is_none() {
        return Ok(None);
    }
    of_dev(project).map(Some)
}

/// The key of `dev`: the one that the environment names, else the file beside the manifest.
pub(crate) fn of_dev(project: &Project) -> Result<Sealer, Error> {
    match named()? {
        Some(named) => Ok(named),
        None => Ok(Sealer::new(KeyFile::new(project.key_file()?))),
    }
}

fn named() -> Result<Option<Sealer>, Error> {
    let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (given(KMS_VARIABLE), given(FILE_VARIABLE)) {
        (Some(_), Some(_)) => {
            let message = format!("{KMS_VARIABLE} and {FILE_VARIABLE} are both set: name one key");
            Err(Error::usage("invalid_configuration", message))
        }
        (Some(key), None) => {
            let aws = Aws::from_env()
                .map_err(|error| Error::usage("invalid_configuration", error.to_string()))?;
            Ok(Some(Sealer::new(KmsKeys::new(&aws, key))))
        }
        (None, Some(path)) => Ok(Some(Sealer::new(KeyFile::new(path)))),
        (None, None) => Ok(None),
    }
}

/// What to say where a key is needed and nobody named one.
pub(crate) fn no_key() -> Error {
    let message = format!(
        "no key to seal secrets with: name one with {KMS_VARIABLE} or {FILE_VARIABLE}, the one that the worker has"
    );
    Error::usage("no_key", message)
}

/// Makes a secret for each, sealed for the id that it has or is to get.
pub(crate) async fn offers(sealer: &Sealer, wanted: &[Secretless]) -> Result<Vec<Offer>, Error> {
    let mut offers = Vec::with_capacity(wanted.len());
    for one in wanted {
        let id = match one.subscription_id {
            Some(id) => id,
            None => new_id()?,
        };
        let secret = generate_secret().map_err(unusable)?;
        let sealed = sealer.seal(&secret, id).await.map_err(unusable)?;
        offers.push(Offer {
            sealed: NewSecret {
                name: one.name.clone(),
                subscription_id: id,
                sealed: sealed.bytes,
                key_id: sealed.key_id,
            },
            secret,
        });
    }
    Ok(offers)
}

/// Opens what is stored for a subscription.
pub(crate) async fn open(
    sealer: &Sealer,
    id: SubscriptionId,
    (bytes, key_id): (Vec<u8>, String),
) -> Result<Secret, Error> {
    let sealed = Sealed { bytes, key_id };
    sealer.open(&sealed, id).await.map_err(|error| match error {
        OpenError::Key(error) => unusable(error),
        error => Error::usage("secret_unusable", error.to_string()),
    })
}

/// The secrets as a table, with what to do.
pub(crate) fn table(issued: &[Issued]) -> Table {
    let mut table = Table::new(["SUBSCRIPTION", "SIGNING SECRET, SHOWN THIS ONCE"]);
    for one in issued {
        table.row([&one.subscription, &one.secret]);
    }
    table
}

/// A random id of a subscription that is not there yet.
fn new_id() -> Result<SubscriptionId, Error> {
    let random = uuid::Builder::from_random_bytes(chance::bytes()?);
    Ok(SubscriptionId::from_uuid(random.into_uuid()))
}

fn unusable(source: KeyError) -> Error {
    Error::Key { source }
}
