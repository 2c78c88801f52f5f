//! Starting and stopping a server.

use std::fs::{DirBuilder, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::cluster::{self, PidFile, data_dir_major, with_suffix};
use crate::error::{Doing as _, Error};
use crate::log;
use crate::options::Options;
use crate::supervisor::{POLL, Supervisor};

/// The name of the superuser of every server made here.
pub const SUPERUSER: &str = "postgres";

/// How long a server may take until it accepts connections. Recovery after a crash with
/// the default WAL size stays well below this on a slow disk.
const START_WITHIN: Duration = Duration::from_secs(60);

/// How long a fast shutdown may take: it ends sessions and writes one checkpoint.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How many free ports are tried: another program may take one between the look and the start.
const PORT_TRIES: usize = 5;

/// A running server. It ends when this is dropped or when our process ends, however it ends.
#[derive(Debug)]
pub struct Server {
    supervisor: Supervisor,
    data_dir: PathBuf,
    binaries: Binaries,
    port: u16,
    pid: u32,
}

impl Server {
    /// Starts a server and waits until it accepts connections.
    ///
    /// # Errors
    /// [`Error::InUse`] where a live server has the data directory, [`Error::PortTaken`],
    /// [`Error::WrongMajor`], [`Error::WrongOwner`], [`Error::InitDb`], or [`Error::Start`] with the end of the log.
    pub fn start(mut options: Options) -> Result<Self, Error> {
        let account = Account::current()?;
        options.data_dir = prepare_parent(&options.data_dir)?;
        // Held until the server is up: two first starts must not fill one folder.
        let lock_path = with_suffix(&options.data_dir, ".lock");
        let lock = File::create(&lock_path).doing(|| format!("making {}", lock_path.display()))?;
        lock.lock()
            .doing(|| format!("locking {}", lock_path.display()))?;
        cluster::make(&options.data_dir, &options.binaries, account)?;
        check_major(&options)?;
        check_owner(&options.data_dir, account)?;
        log::rotate(&log::path(&options.data_dir))?;
        let deadline = Instant::now() + START_WITHIN;
        let mut ports_left = PORT_TRIES;
        loop {
            let port = pick_port(options.port)?;
            match Attempt::run(&options, account, port, deadline)? {
                Attempt::Ready(server) => return Ok(server),
                Attempt::PortTaken if options.port != 0 => {
                    return Err(Error::PortTaken { port });
                }
                Attempt::PortTaken if ports_left > 1 => ports_left -= 1,
                Attempt::StillStopping if Instant::now() < deadline => std::thread::sleep(POLL),
                Attempt::PortTaken | Attempt::StillStopping => {
                    let problem = "no port stayed free, or an earlier server did not end";
                    return Err(log::start_error(&options.data_dir, 0, problem));
                }
            }
        }
    }

    /// The URL of a database on this server, for the superuser, without a password.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_as(SUPERUSER, database)
    }

    /// The URL of a database on this server for a role. Names must need no escaping.
    #[must_use]
    pub fn url_as(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The programs this server runs from.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The server's log file.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        log::path(&self.data_dir)
    }

    /// Whether the server is still running.
    pub fn is_running(&mut self) -> bool {
        self.supervisor.ended().is_none()
    }

    /// Stops the server: sessions end, what is committed stays.
    ///
    /// # Errors
    /// [`Error::Stop`] where it takes more than 30 s.
    pub fn stop(mut self) -> Result<(), Error> {
        if self.supervisor.stop() {
            return Ok(());
        }
        Err(Error::Stop {
            data_dir: self.data_dir.clone(),
            seconds: STOP_WITHIN.as_secs(),
        })
    }
}

/// How one try to start went.
enum Attempt {
    Ready(Server),
    PortTaken,
    /// The server before us on this folder is still going down.
    StillStopping,
}

impl Attempt {
    fn run(
        options: &Options,
        account: Account,
        port: u16,
        deadline: Instant,
    ) -> Result<Self, Error> {
        let data_dir = &options.data_dir;
        let log = log::path(data_dir);
        let log_start = std::fs::metadata(&log).map_or(0, |found| found.len());
        let program = options.binaries.program("postgres");
        let arguments = options.arguments(port);
        let mut supervisor = Supervisor::start(account, &log, &program, &arguments, STOP_WITHIN)?;
        loop {
            if let Some(status) = supervisor.ended() {
                return Self::after_end(data_dir, log_start, &status.to_string());
            }
            let file = PidFile::read(data_dir);
            // The port in the file tells our server's line from that of one before us.
            if let Some(file) = file.filter(|file| file.port == port && file.status == "ready") {
                return Ok(Self::Ready(Server {
                    supervisor,
                    data_dir: data_dir.clone(),
                    binaries: options.binaries.clone(),
                    port,
                    pid: file.pid,
                }));
            }
            if Instant::now() >= deadline {
                let problem = format!("not ready after {} s", START_WITHIN.as_secs());
                return Err(log::start_error(data_dir, log_start, &problem));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Tells from the log why the server ended before it was ready.
    fn after_end(data_dir: &Path, log_start: u64, status: &str) -> Result<Self, Error> {
        let log = log::read_from(&log::path(data_dir), log_start);
        if log.contains("could not create any TCP/IP sockets") {
            return Ok(Self::PortTaken);
        }
        // A killed server's sessions notice within moments and free its memory.
        if log.contains("pre-existing shared memory block") {
            return Ok(Self::StillStopping);
        }
        if log.contains("lock file \"postmaster.pid\" already exists") {
            return match PidFile::read(data_dir) {
                Some(file) if file.status != "stopping" => Err(Error::InUse {
                    data_dir: data_dir.to_path_buf(),
                    pid: file.pid,
                    port: file.port,
                }),
                _ => Ok(Self::StillStopping),
            };
        }
        let problem = format!("it ended with {status}");
        Err(log::start_error(data_dir, log_start, &problem))
    }
}

/// Makes the folder above the data directory, and gives the data directory's absolute path.
fn prepare_parent(data_dir: &Path) -> Result<PathBuf, Error> {
    let data_dir =
        std::path::absolute(data_dir).doing(|| format!("finding {}", data_dir.display()))?;
    if let Some(parent) = data_dir.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(parent)
            .doing(|| format!("making {}", parent.display()))?;
    }
    Ok(data_dir)
}

fn check_major(options: &Options) -> Result<(), Error> {
    match data_dir_major(&options.data_dir) {
        Some(data) if data != options.binaries.version.0 => Err(Error::WrongMajor {
            data_dir: options.data_dir.clone(),
            data,
            programs: options.binaries.version.0,
        }),
        _ => Ok(()),
    }
}

fn check_owner(data_dir: &Path, account: Account) -> Result<(), Error> {
    let found = std::fs::metadata(data_dir).doing(|| format!("reading {}", data_dir.display()))?;
    if found.uid() == account.uid() {
        return Ok(());
    }
    Err(Error::WrongOwner {
        data_dir: data_dir.to_path_buf(),
        owner: found.uid(),
        runner: account.uid(),
    })
}

/// The port to try: the one asked for, or one that was free a moment ago.
fn pick_port(asked: u16) -> Result<u16, Error> {
    if asked != 0 {
        return Ok(asked);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .doing(|| "looking for a free port on 127.0.0.1".to_owned())?;
    let address = listener
        .local_addr()
        .doing(|| "looking for a free port on 127.0.0.1".to_owned())?;
    Ok(address.port())
}
