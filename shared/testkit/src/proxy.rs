//! A TCP proxy in front of PostgreSQL that fails on demand.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

/// PostgreSQL's port, where a URL names none.
const DEFAULT_PORT: u16 = 5432;

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// What the proxy does to traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Everything passes.
    #[default]
    None,
    /// Each piece of what the client sends waits this long: one round trip costs it once.
    Delay(Duration),
    /// Connections stay open and nothing passes, as with packets dropped on the way.
    BlackHole,
    /// What the client sends arrives; the server's answers are lost.
    DropReplies,
    /// New connections are closed at once; the existing ones go on.
    Refuse,
}

#[derive(Clone, Copy, Default)]
struct Control {
    fault: Fault,
    /// Goes up with each cut; a connection ends when it sees a change.
    cuts: u64,
    /// Goes up with each stranding; a connection is silent once it sees a change.
    strandings: u64,
}

#[derive(Default)]
struct Counters {
    accepted: AtomicU64,
    turns: AtomicU64,
}

/// The running proxy; it ends, with all its connections, when dropped.
pub struct FaultProxy {
    url: Url,
    control: Arc<watch::Sender<Control>>,
    counters: Arc<Counters>,
    task: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy on a free port of 127.0.0.1, in front of the server of a database URL.
    ///
    /// # Panics
    /// Where the URL names no server or no port is free.
    pub async fn start(upstream: &str) -> Self {
        let mut url: Url = upstream.parse().expect("a database URL is a URL");
        let host = url.host_str().expect("a database URL names a host");
        let target = (host.to_owned(), url.port().unwrap_or(DEFAULT_PORT));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port of 127.0.0.1 is free");
        let port = listener.local_addr().expect("it listens").port();
        url.set_host(Some("127.0.0.1"))
            .and_then(|()| {
                url.set_port(Some(port))
                    .map_err(|()| url::ParseError::InvalidPort)
            })
            .expect("a database URL takes a host and a port");
        let control = Arc::new(watch::Sender::new(Control::default()));
        let counters = Arc::new(Counters::default());
        let task = tokio::spawn(accept(
            listener,
            target,
            Arc::clone(&control),
            Arc::clone(&counters),
        ));
        Self {
            url,
            control,
            counters,
            task,
        }
    }

    /// The database URL that leads through the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// The proxy's port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(DEFAULT_PORT)
    }

    /// From now on, this happens to traffic, on existing connections too.
    pub fn set(&self, fault: Fault) {
        self.control.send_modify(|control| control.fault = fault);
    }

    /// Ends every connection there is. New ones follow the current fault.
    pub fn cut(&self) {
        self.control.send_modify(|control| control.cuts += 1);
    }

    /// Nothing passes on the connections there are, and nobody is told, as when a
    /// frozen machine thaws long after its links died. New ones follow the current fault.
    pub fn strand(&self) {
        self.control.send_modify(|control| control.strandings += 1);
    }

    /// How many connections were accepted so far, refused ones included.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    /// How many times a client spoke after its server had: the number of round trips so
    /// far, those of opening a connection included.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.counters.turns.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    target: (String, u16),
    control: Arc<watch::Sender<Control>>,
    counters: Arc<Counters>,
) {
    while let Ok((client, _)) = listener.accept().await {
        counters.accepted.fetch_add(1, Ordering::SeqCst);
        let watched = control.subscribe();
        if watched.borrow().fault == Fault::Refuse {
            continue;
        }
        let (target, counters) = (target.clone(), Arc::clone(&counters));
        tokio::spawn(async move {
            let (host, port) = target;
            if let Ok(server) = TcpStream::connect((host.as_str(), port)).await {
                serve(client, server, watched, counters).await;
            }
        });
    }
}

async fn serve(
    client: TcpStream,
    server: TcpStream,
    control: watch::Receiver<Control>,
    counters: Arc<Counters>,
) {
    // Small packets at once: a delay must be the one asked for, not Nagle's.
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let client_spoke_last = Arc::new(AtomicU64::new(0));
    let turn = Turn {
        counters,
        client_spoke_last,
    };
    let up = Pump {
        from: client_in,
        to: server_out,
        upwards: true,
        control: control.clone(),
        turn: turn.clone(),
    };
    let down = Pump {
        from: server_in,
        to: client_out,
        upwards: false,
        control,
        turn,
    };
    // When either direction ends, both halves are dropped and the connection is closed.
    tokio::select! {
        () = up.run() => {}
        () = down.run() => {}
    }
}

#[derive(Clone)]
struct Turn {
    counters: Arc<Counters>,
    /// 1 while the client has the last word.
    client_spoke_last: Arc<AtomicU64>,
}

impl Turn {
    fn heard(&self, client: bool) {
        let before = self
            .client_spoke_last
            .swap(u64::from(client), Ordering::SeqCst);
        if client && before == 0 {
            self.counters.turns.fetch_add(1, Ordering::SeqCst);
        }
    }
}

struct Pump {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    upwards: bool,
    control: watch::Receiver<Control>,
    turn: Turn,
}

impl Pump {
    /// Moves bytes until an end is closed or the connection is cut.
    async fn run(self) {
        let Self {
            mut from,
            mut to,
            upwards,
            mut control,
            turn,
        } = self;
        let Control {
            cuts, strandings, ..
        } = *control.borrow();
        let mut cut_watch = control.clone();
        let pump = async {
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(read @ 1..) = from.read(&mut chunk).await {
                turn.heard(upwards);
                let now = *control.borrow_and_update();
                match now.fault {
                    _ if now.strandings != strandings => continue,
                    Fault::BlackHole => continue,
                    Fault::DropReplies if !upwards => continue,
                    Fault::Delay(time) if upwards => tokio::time::sleep(time).await,
                    _ => {}
                }
                if to.write_all(&chunk[..read]).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = pump => {}
            _ = cut_watch.wait_for(|now| now.cuts != cuts) => {}
        }
    }
}
