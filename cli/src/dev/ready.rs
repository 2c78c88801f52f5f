//! The ready message of `dev`.

use serde::Serialize;
use serde_json::json;

use crate::apply::reference;
use crate::error::Error;
use crate::keys::{self, Issued};
use crate::manifest::{Manifest, SecretRef, Source};
use crate::output::{self, Table, bold, dim};
use crate::project::Project;
use crate::secret;

#[derive(Serialize)]
struct Row {
    name: String,
    kind: String,
    /// `None` where events are published.
    endpoint: Option<String>,
    /// The secret itself where `dev` made it, else where it is.
    secret: Option<String>,
    try_it: String,
}

/// Prints where everything is. The only place that shows development secrets.
pub(crate) async fn print(
    url: &str,
    project: &Project,
    manifest: &Manifest,
    database: &str,
    issued: &[Issued],
    as_json: bool,
) -> Result<(), Error> {
    let mut rows = Vec::new();
    for source in &manifest.sources {
        rows.push(Row {
            name: source.name.to_string(),
            kind: source.kind.clone(),
            endpoint: (!source.is_outbox())
                .then(|| format!("{url}/webhooks/{}", source.name.as_str())),
            secret: shown_secret(project, source).await,
            try_it: try_it(manifest, source),
        });
    }
    if as_json {
        let ready = json!({
            "ready": true, "url": url, "database": database, "sources": rows, "secrets": issued,
        });
        return output::line(&ready.to_string());
    }
    let mut table = Table::new(["SOURCE", "KIND", "ENDPOINT", "SECRET", "TRY"]);
    for row in rows {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let (endpoint, secret) = (or_dash(row.endpoint), or_dash(row.secret));
        table.row([row.name, row.kind, endpoint, secret, row.try_it]);
    }
    let issued = match issued {
        [] => String::new(),
        issued => format!("{}\n\n", keys::table(issued).render()),
    };
    output::line(&format!(
        "{}\n{}\n\n{}\n\n{issued}{}",
        bold(&format!("Hookstead is ready on {url}")),
        dim(database),
        table.render(),
        dim(&format!(
            "Ctrl-C stops everything and keeps the data. `{} events` lists what arrived.",
            output::program()
        ))
    ))
}

async fn shown_secret(project: &Project, source: &Source) -> Option<String> {
    let reference = reference(source)?;
    Some(match secret::current(project, source).await {
        Ok(secret) if source.secret == Some(SecretRef::Dev) => secret.expose().to_owned(),
        Ok(_) => reference,
        Err(_) => format!("{reference} (not there)"),
    })
}

fn try_it(manifest: &Manifest, source: &Source) -> String {
    if source.is_outbox() {
        let (program, name) = (output::program(), source.name.as_str());
        return format!("{program} publish order.placed --source {name}");
    }
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
