//! The ready message of `dev`.

use serde::Serialize;
use serde_json::json;

use crate::apply::reference;
use crate::error::Error;
use crate::manifest::{Manifest, SecretRef, Source};
use crate::output::{self, Table, bold, dim};
use crate::project::Project;
use crate::secret;

#[derive(Serialize)]
struct Row {
    name: String,
    kind: String,
    endpoint: String,
    /// The secret itself where `dev` made it, else where it is.
    secret: String,
    try_it: String,
}

/// Prints where everything is. The only place that shows development secrets.
pub(crate) async fn print(
    url: &str,
    project: &Project,
    manifest: &Manifest,
    database: &str,
    as_json: bool,
) -> Result<(), Error> {
    let mut rows = Vec::new();
    for source in &manifest.sources {
        rows.push(Row {
            name: source.name.to_string(),
            kind: source.kind.clone(),
            endpoint: format!("{url}/webhooks/{}", source.name.as_str()),
            secret: shown_secret(project, source).await,
            try_it: try_it(manifest, source),
        });
    }
    if as_json {
        let ready = json!({ "ready": true, "url": url, "database": database, "sources": rows });
        return output::line(&ready.to_string());
    }
    let mut table = Table::new(["SOURCE", "KIND", "ENDPOINT", "SECRET", "TRY"]);
    for row in rows {
        table.row([row.name, row.kind, row.endpoint, row.secret, row.try_it]);
    }
    output::line(&format!(
        "{}\n{}\n\n{}\n\n{}",
        bold(&format!("Hookstead is ready on {url}")),
        dim(database),
        table.render(),
        dim(&format!(
            "Ctrl-C stops everything and keeps the data. `{} events` lists what arrived.",
            output::program()
        ))
    ))
}

async fn shown_secret(project: &Project, source: &Source) -> String {
    match secret::current(project, source).await {
        Ok(secret) if source.secret == SecretRef::Dev => secret.expose().to_owned(),
        Ok(_) => reference(source),
        Err(_) => format!("{} (not there)", reference(source)),
    }
}

fn try_it(manifest: &Manifest, source: &Source) -> String {
    let same_kind = manifest
        .sources
        .iter()
        .filter(|other| other.kind == source.kind);
    let wanted = if same_kind.count() > 1 {
        source.name.as_str()
    } else {
        &source.kind
    };
    format!("{} send {wanted}", output::program())
}
