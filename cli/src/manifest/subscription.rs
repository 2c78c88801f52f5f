//! `[[subscription]]`: who gets which events, and how often it is tried.

use std::collections::BTreeSet;

use hookstead_domain::{
    EventTypePattern, MAX_AGE_S, MAX_GIVE_UP_AFTER, MAX_RETRIES, MAX_TIMEOUT_MS, MAX_WAIT_S,
    SourceName,
};
use toml::Spanned;
use toml::de::DeTable;

use super::destination::{self, Destination};
use super::fields::{Fields, Text};
use super::problem::Problems;
use super::source::{patterns, short, value};

/// Most deliveries per second of one subscription; the database's own limit.
const MAX_RATE_PER_S: u64 = 100_000;

/// Overrides of the default retry policy. Absent members keep the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Retry {
    pub(crate) schedule_s: Option<Vec<u32>>,
    pub(crate) jitter: Option<f64>,
    pub(crate) timeout_ms: Option<u32>,
    pub(crate) max_age_s: Option<u32>,
    pub(crate) give_up_after_identical: Option<u32>,
}

/// One subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) line: usize,
    pub(crate) name: SourceName,
    /// The source whose events it takes; `None`: of every source.
    pub(crate) source: Option<SourceName>,
    pub(crate) event_types: Vec<EventTypePattern>,
    /// A SQL/JSON path; the database checks it when it is applied.
    pub(crate) payload_filter: Option<String>,
    pub(crate) destination: Destination,
    /// The line of the destination.
    pub(crate) destination_line: usize,
    pub(crate) retry: Retry,
    pub(crate) tenant: Option<String>,
    pub(crate) schema_version: Option<String>,
    pub(crate) rate_limit_per_s: Option<u32>,
    pub(crate) enabled: bool,
}

pub(super) fn read<'t>(
    number: usize,
    table: Spanned<DeTable<'t>>,
    sources: &BTreeSet<&str>,
    text: &Text<'t>,
    problems: &mut Problems,
) -> Option<Subscription> {
    let mut fields = Fields::new(format!("subscription {number}"), table, text, problems);
    let name = name(&mut fields);
    if let Some(name) = &name {
        fields.rename(format!("subscription \"{}\"", name.as_str()));
    }
    let line = fields.line();
    let source = fields.parse("source", "unknown_source", |text| {
        let known = sources
            .contains(text)
            .then(|| text.parse::<SourceName>().ok())
            .flatten();
        known.ok_or_else(|| format!("there is no source \"{text}\" in this manifest"))
    });
    let event_types = patterns(&mut fields, "event_types");
    let payload_filter = fields.parse("payload_filter", "out_of_range", short(8192));
    if !fields.has("destination") {
        let message =
            "a subscription needs a destination: { kind = \"http\", url = \"https://…\" }";
        fields.missing("destination", message);
    }
    let destination = fields.table("destination");
    let destination_line = destination
        .as_ref()
        .map_or(line, |table| text.line(table.span().start));
    let retry = fields.table("retry");
    let tenant = fields.parse("tenant", "out_of_range", short(128));
    let schema_version = fields.parse("schema_version", "out_of_range", short(64));
    let rate_limit_per_s = bounded(&mut fields, "rate_limit_per_s", MAX_RATE_PER_S);
    let enabled = fields.take::<bool>("enabled", "true or false");
    fields.finish();
    let shown = name.as_ref().map_or_else(
        || number.to_string(),
        |name| format!("\"{}\"", name.as_str()),
    );
    let destination = destination.map(|table| {
        destination::read(Fields::new(
            format!("subscription {shown}, destination"),
            table,
            text,
            problems,
        ))
    });
    let retry = retry.map(|table| {
        retry_of(Fields::new(
            format!("subscription {shown}, retry"),
            table,
            text,
            problems,
        ))
    });
    Some(Subscription {
        line,
        name: name?,
        source: value(source),
        event_types,
        payload_filter: value(payload_filter),
        destination: destination??,
        destination_line,
        retry: retry.unwrap_or_default(),
        tenant: value(tenant),
        schema_version: value(schema_version),
        rate_limit_per_s,
        enabled: value(enabled).unwrap_or(true),
    })
}

fn name(fields: &mut Fields<'_, '_>) -> Option<SourceName> {
    if !fields.has("name") {
        fields.missing("name", "a subscription needs a name");
    }
    value(fields.parse("name", "invalid_name", |text| {
        let parsed = text.parse::<SourceName>();
        parsed.map_err(|error| {
            error
                .to_string()
                .replace("source name", "subscription name")
        })
    }))
}

fn retry_of(mut fields: Fields<'_, '_>) -> Retry {
    let schedule = fields.take::<Vec<u32>>("schedule_s", "a list of whole seconds");
    if let Some((line, schedule)) = &schedule {
        if schedule.len() > MAX_RETRIES {
            fields.problem(
                "schedule_s",
                *line,
                "out_of_range",
                format!("holds at most {MAX_RETRIES}"),
            );
        }
        if schedule
            .iter()
            .any(|&wait_s| u64::from(wait_s) > MAX_WAIT_S)
        {
            let message = format!("no wait is longer than {MAX_WAIT_S} (30 days)");
            fields.problem("schedule_s", *line, "out_of_range", message);
        }
    }
    let jitter = fields.take::<f64>("jitter", "a number from 0 to 1");
    if let Some((line, jitter)) = jitter
        && !(0.0..=1.0).contains(&jitter)
    {
        fields.problem("jitter", line, "out_of_range", "is a number from 0 to 1");
    }
    let retry = Retry {
        schedule_s: value(schedule),
        jitter: value(jitter),
        timeout_ms: bounded(&mut fields, "timeout_ms", MAX_TIMEOUT_MS),
        max_age_s: bounded(&mut fields, "max_age_s", MAX_AGE_S),
        give_up_after_identical: bounded(&mut fields, "give_up_after_identical", MAX_GIVE_UP_AFTER),
    };
    fields.finish();
    retry
}

/// A whole number from 1 to `max`.
fn bounded(fields: &mut Fields<'_, '_>, field: &'static str, max: u64) -> Option<u32> {
    let (line, number) = fields.take::<u32>(field, "a whole number")?;
    if !(1..=max).contains(&u64::from(number)) {
        fields.problem(
            field,
            line,
            "out_of_range",
            format!("is a number from 1 to {max}"),
        );
        return None;
    }
    Some(number)
}
