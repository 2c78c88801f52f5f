//! `destination = { … }`: where a subscription's events go.

use std::collections::BTreeMap;
use std::fmt;

use hookstead_egress::webhook::{CustomHeaders, Mode};
use hookstead_egress::{AllowList, Target, TargetError};
use serde::Serialize;

use super::fields::Fields;
use super::source::{short, value};

/// Longest name of a handler, bus or function, and longest source or detail type of an
/// event on a bus: what AWS takes is shorter or as long.
const MAX_NAME_CHARS: usize = 256;

/// Every kind, as messages list them.
const KINDS: &str = "\"http\", \"handler\", \"sqs\", \"eventbridge\", \"lambda\" or \"pull\"";

/// Where events go. It serialises to what the database holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Destination {
    /// A signed POST.
    Http(Http),
    /// A handler inside the worker.
    Handler { name: String },
    /// An SQS queue.
    Sqs { queue_url: String },
    /// An event bus.
    Eventbridge {
        bus: String,
        /// The `source` of entries; absent: the envelope's.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// The `detail-type` of entries; absent: the event's type.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail_type: Option<String>,
    },
    /// A Lambda function.
    Lambda { function: String },
    /// Nowhere: the consumer comes for them.
    Pull {},
}

/// An address that is called. What is at its default is left out of the JSON.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Http {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) mode: Mode,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) allow_http: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) headers: BTreeMap<String, String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Paths, queries and header values may be secrets.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("mode", &self.mode)
            .field("allow_http", &self.allow_http)
            .finish_non_exhaustive()
    }
}

impl Http {
    /// What is wrong with the address, apart from whether it is public: that depends on
    /// where it is called from.
    pub(crate) fn check_url(&self) -> Result<(), String> {
        let everywhere = ["0.0.0.0/0", "::/0"].into_iter();
        let everywhere: AllowList = everywhere.filter_map(|block| block.parse().ok()).collect();
        match Target::parse_allowing(&self.url, self.allow_http, &everywhere) {
            Ok(_) => Ok(()),
            Err(TargetError::NotHttps) => {
                Err("is not https; `allow_http = true` beside it allows that".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether the address may be called by whoever allows these addresses. A name is
    /// resolved when it is called, and checked then.
    pub(crate) fn is_allowed(&self, allowed: &AllowList) -> bool {
        Target::parse_allowing(&self.url, self.allow_http, allowed).is_ok()
    }

    /// The first header that cannot be sent: its name, a code and what is wrong.
    pub(crate) fn bad_header(&self) -> Option<(String, &'static str, String)> {
        let alone = self.headers.iter().find_map(|(name, value)| {
            let error = CustomHeaders::parse([(name, value)]).err()?;
            // The number would be that of a list of one.
            let message = error.to_string().replace("header 1", "it");
            Some((name.clone(), error.code(), message))
        });
        alone.or_else(|| {
            let error = CustomHeaders::parse(&self.headers).err()?;
            Some((String::new(), error.code(), error.to_string()))
        })
    }
}

pub(super) fn read(mut fields: Fields<'_, '_>) -> Option<Destination> {
    if !fields.has("kind") {
        fields.missing("kind", &format!("must be {KINDS}"));
    }
    let kind = fields.parse("kind", "unknown_destination", |kind| match kind {
        "http" | "handler" | "sqs" | "eventbridge" | "lambda" | "pull" => Ok(kind.to_owned()),
        _ => Err(format!("must be {KINDS}")),
    });
    // Without a kind nobody can say which fields are wrong.
    let kind = value(kind)?;
    let destination = match kind.as_str() {
        "http" => http(&mut fields).map(Destination::Http),
        "handler" => handler(&mut fields).map(|name| Destination::Handler { name }),
        "sqs" => queue_url(&mut fields).map(|queue_url| Destination::Sqs { queue_url }),
        "eventbridge" => eventbridge(&mut fields),
        "lambda" => required(&mut fields, "function", "the function's name or ARN")
            .map(|function| Destination::Lambda { function }),
        _ => Some(Destination::Pull {}),
    };
    fields.finish();
    destination
}

fn http(fields: &mut Fields<'_, '_>) -> Option<Http> {
    let allow_http = value(fields.take::<bool>("allow_http", "true or false")).unwrap_or(false);
    if !fields.has("url") {
        fields.missing("url", "an http destination needs a URL");
    }
    let url = fields.parse("url", "invalid_url", |text| {
        let http = Http {
            url: text.to_owned(),
            allow_http,
            ..Http::default()
        };
        http.check_url().map(|()| text.to_owned())
    });
    let mode = fields.parse("mode", "out_of_range", |text| {
        text.parse::<Mode>().map_err(|error| error.to_string())
    });
    let headers = fields.take::<BTreeMap<String, String>>("headers", "a table of texts");
    let line = headers.as_ref().map_or(0, |(line, _)| *line);
    let http = Http {
        url: value(url)?,
        mode: value(mode).unwrap_or_default(),
        allow_http,
        headers: value(headers).unwrap_or_default(),
    };
    if let Some((name, code, message)) = http.bad_header() {
        let message = match name.as_str() {
            "" => message,
            name => format!("\"{name}\": {message}"),
        };
        fields.problem("headers", line, code, message);
    }
    Some(http)
}

fn handler(fields: &mut Fields<'_, '_>) -> Option<String> {
    if !fields.has("name") {
        fields.missing("name", "a handler destination needs the handler's name");
    }
    value(fields.parse("name", "invalid_name", |text| {
        let known = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(known);
        fits.then(|| text.to_owned()).ok_or_else(|| {
            "a handler's name is 1 to 64 letters, digits, '.', '-' and '_'".to_owned()
        })
    }))
}

fn queue_url(fields: &mut Fields<'_, '_>) -> Option<String> {
    if !fields.has("queue_url") {
        fields.missing("queue_url", "an sqs destination needs the queue's URL");
    }
    value(fields.parse("queue_url", "invalid_url", |text| {
        let url = url::Url::parse(text).ok();
        // An emulator's queue has an http URL.
        let fits = url.is_some_and(|url| {
            matches!(url.scheme(), "https" | "http") && url.has_host() && url.path().len() > 1
        });
        fits.then(|| text.to_owned())
            .ok_or_else(|| "must be the URL of a queue, as SQS gives it".to_owned())
    }))
}

fn eventbridge(fields: &mut Fields<'_, '_>) -> Option<Destination> {
    let bus = required(fields, "bus", "the bus's name or ARN");
    let source = fields.parse("source", "out_of_range", |text| {
        // EventBridge keeps these for the services of AWS itself.
        if text.starts_with("aws.") {
            return Err("must not begin with aws.".to_owned());
        }
        short(MAX_NAME_CHARS)(text)
    });
    let detail_type = fields.parse("detail_type", "out_of_range", short(128));
    Some(Destination::Eventbridge {
        bus: bus?,
        source: value(source),
        detail_type: value(detail_type),
    })
}

fn required(fields: &mut Fields<'_, '_>, field: &'static str, what: &str) -> Option<String> {
    if !fields.has(field) {
        fields.missing(field, &format!("needs {what}"));
    }
    value(fields.parse(field, "out_of_range", short(MAX_NAME_CHARS)))
}
