//! Two consumers: one that takes everything, and one that has its days.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::http::{Reply, Request, Server};

/// Of a hundred deliveries, so many are first answered with 500.
const REFUSED_PERCENT: u128 = 20;

/// And so many are first not answered at all.
const HUNG_PERCENT: u128 = 2;

/// What came for a delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) requests: u64,
    /// Requests that were answered with 200.
    pub(crate) taken: u64,
}

type Ledger = Arc<Mutex<HashMap<Uuid, Heard>>>;

pub(crate) struct Sink {
    server: Server,
    ledger: Ledger,
}

impl Sink {
    /// Takes everything.
    pub(crate) async fn steady() -> Self {
        Self::start(|_, _| Some(200)).await
    }

    /// Fails some first attempts: which, the delivery's id decides, which is a hash.
    pub(crate) async fn flaky() -> Self {
        Self::start(|delivery, attempt| {
            let share = delivery.as_u128() % 100;
            match attempt {
                "1" if share < HUNG_PERCENT => None,
                "1" if share < HUNG_PERCENT + REFUSED_PERCENT => Some(500),
                _ => Some(200),
            }
        })
        .await
    }

    async fn start(status: impl Fn(Uuid, &str) -> Option<u16> + Send + Sync + 'static) -> Self {
        let ledger = Ledger::default();
        let heard = Arc::clone(&ledger);
        let server = Server::start(move |request| {
            let delivery = delivery_of(&request);
            let status = status(delivery, &request.headers["hookstead-attempt"]);
            let mut heard = heard.lock().unwrap();
            let heard = heard.entry(delivery).or_default();
            heard.requests += 1;
            heard.taken += u64::from(status == Some(200));
            match status {
                Some(status) => Reply::whole(&format!("{status} -"), &[], ""),
                None => Reply::Never,
            }
        })
        .await;
        Self { server, ledger }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("hooks")
    }

    pub(crate) fn heard(&self) -> HashMap<Uuid, Heard> {
        self.ledger.lock().unwrap().clone()
    }
}

fn delivery_of(request: &Request) -> Uuid {
    request.headers["webhook-id"].parse().unwrap()
}
