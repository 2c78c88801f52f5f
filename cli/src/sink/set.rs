//! `hookstead sink set`.

use std::net::SocketAddr;

use hookstead_signing::Headers;
use serde_json::json;
use url::Url;

use super::LISTEN;
use super::mode::Mode;
use crate::error::{Error, Exit};
use crate::http_client;
use crate::output::{self, printable};
use crate::raw_request::RawRequest;

/// Switch a running sink to another mode
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// ok, slow=MS, status=N, reset, huge, hang, or flaky=P
    #[arg(value_name = "MODE")]
    mode: Mode,
    /// Where the sink listens
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, value_parser = crate::address::parse)]
    at: SocketAddr,
    /// Print the mode as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { mode, at, json } = arguments;
    let address = format!("http://{at}/_sink/mode");
    let url: Url = address
        .parse()
        .map_err(|_| Error::usage("invalid_url", format!("{address} is no address")))?;
    let request = RawRequest {
        method: "POST".to_owned(),
        target: url.path().to_owned(),
        headers: Headers::new(),
        body: mode.to_string().into_bytes(),
    };
    let received = http_client::send(&request, &url).await?;
    let answer = String::from_utf8_lossy(&received.body);
    if received.status != 200 || answer.trim() != mode.to_string() {
        let message = format!(
            "what listens on {at} is no sink: it answered {}",
            received.status
        );
        return Err(Error::usage("not_a_sink", message));
    }
    if json {
        output::json(&json!({ "mode": mode, "at": at.to_string() }))?;
    } else {
        output::line(&printable(&format!("The sink on {at} is in mode {mode}.")))?;
    }
    Ok(Exit::Yes)
}
