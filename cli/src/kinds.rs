//! `hookstead kinds`: the built-in signing kinds.

use hookstead_signing::{Scheme, builtin, builtin_toml, kinds};
use serde::Serialize;

use crate::error::{Error, Exit};
use crate::output::{self, Table};

/// List the built-in signing kinds
///
/// Says how each signs, and where. With KIND, prints that kind's scheme, ready to start one of your own from.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print the scheme of this kind as TOML
    kind: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    name: &'static str,
    method: String,
    places: Vec<String>,
    event_id: Option<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit, Error> {
    if let Some(kind) = &arguments.kind {
        return one(kind, arguments.json);
    }
    let rows: Vec<Row> = kinds()
        .filter_map(|kind| Some(row(kind, builtin(kind)?)))
        .collect();
    if arguments.json {
        output::json(&rows)?;
        return Ok(Exit::Yes);
    }
    let mut table = Table::new(["KIND", "NAME", "SIGNED BY", "IN"]);
    for row in &rows {
        table.row([row.kind, row.name, &row.method, &row.places.join(", ")]);
    }
    output::line(&table.render())?;
    Ok(Exit::Yes)
}

fn one(kind: &str, json: bool) -> Result<Exit, Error> {
    let (Some(scheme), Some(toml)) = (builtin(kind), builtin_toml(kind)) else {
        return Err(Error::NotFound {
            code: "unknown_kind",
            message: format!("there is no built-in kind \"{kind}\""),
        });
    };
    if json {
        output::json(scheme)?;
    } else {
        output::write(toml.as_bytes())?;
    }
    Ok(Exit::Yes)
}

fn row(kind: &'static str, scheme: &'static Scheme) -> Row {
    Row {
        kind,
        name: &scheme.name,
        method: method(scheme),
        places: places(scheme),
        event_id: scheme.event.id.as_ref().map(ToString::to_string),
    }
}

fn method(scheme: &Scheme) -> String {
    if let Some(rule) = &scheme.signature {
        // The same word as in a scheme's TOML.
        let word = serde_json::to_value(rule.algorithm).ok();
        return word
            .and_then(|word| word.as_str().map(str::to_owned))
            .unwrap_or_default();
    }
    match (&scheme.token, &scheme.basic, &scheme.jwt) {
        (Some(_), _, _) => "token".to_owned(),
        (_, Some(_), _) => "basic credentials".to_owned(),
        (_, _, Some(rule)) => format!("jwt {}", rule.algorithms.join("|")),
        _ => String::new(),
    }
}

fn places(scheme: &Scheme) -> Vec<String> {
    let signature = scheme.signature.iter().flat_map(|rule| &rule.from);
    let token = scheme.token.iter().flat_map(|rule| &rule.from);
    let basic = scheme.basic.iter().map(|rule| &rule.from);
    let jwt = scheme.jwt.iter().map(|rule| &rule.from);
    signature
        .chain(token)
        .chain(basic)
        .chain(jwt)
        .map(ToString::to_string)
        .collect()
}
