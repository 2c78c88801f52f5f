//! The proxy's faults, seen by a client that sends a byte and hopes for it back.

use std::net::Ipv4Addr;
use std::time::Duration;

use hookstead_testkit::{Fault, FaultProxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server that sends back each byte, and tells how many it got through the returned channel.
async fn echo() -> (String, tokio::sync::mpsc::UnboundedReceiver<u8>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let heard = heard.clone();
            tokio::spawn(async move {
                while let Ok(byte) = client.read_u8().await {
                    heard.send(byte).ok();
                    client.write_u8(byte).await.ok();
                }
            });
        }
    });
    (format!("postgres://user@127.0.0.1:{port}/database"), hears)
}

async fn open(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()))
        .await
        .unwrap()
}

async fn ask(client: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
    client.write_u8(byte).await?;
    client.read_u8().await
}

#[tokio::test]
async fn without_a_fault_everything_passes_and_round_trips_are_counted() {
    let (url, _hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut client = open(&proxy).await;
    for byte in 1..=3 {
        assert_eq!(ask(&mut client, byte).await.unwrap(), byte);
    }
    assert_eq!((proxy.accepted(), proxy.round_trips()), (1, 3));
    assert!(proxy.url().ends_with("/database"));
}

#[tokio::test]
async fn a_cut_ends_existing_connections_and_lets_new_ones_in() {
    let (url, _hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut client = open(&proxy).await;
    ask(&mut client, 1).await.unwrap();
    proxy.cut();
    assert!(client.read_u8().await.is_err());
    assert_eq!(ask(&mut open(&proxy).await, 2).await.unwrap(), 2);
}

#[tokio::test]
async fn refused_connections_end_at_once() {
    let (url, _hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    proxy.set(Fault::Refuse);
    assert!(open(&proxy).await.read_u8().await.is_err());
    proxy.set(Fault::None);
    assert_eq!(ask(&mut open(&proxy).await, 2).await.unwrap(), 2);
}

#[tokio::test]
async fn lost_replies_reach_the_server_but_never_the_client() {
    let (url, mut hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut client = open(&proxy).await;
    proxy.set(Fault::DropReplies);
    client.write_u8(7).await.unwrap();
    assert_eq!(hears.recv().await, Some(7));
    proxy.cut();
    assert!(client.read_u8().await.is_err());
}

#[tokio::test]
async fn a_black_hole_swallows_what_the_client_sends() {
    let (url, mut hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut client = open(&proxy).await;
    ask(&mut client, 1).await.unwrap();
    proxy.set(Fault::BlackHole);
    client.write_u8(2).await.unwrap();
    proxy.cut();
    assert!(client.read_u8().await.is_err());
    proxy.set(Fault::None);
    ask(&mut open(&proxy).await, 3).await.unwrap();
    assert_eq!((hears.recv().await, hears.recv().await), (Some(1), Some(3)));
}

#[tokio::test]
async fn a_stranded_connection_stays_silent_while_new_ones_work() {
    let (url, mut hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut stranded = open(&proxy).await;
    ask(&mut stranded, 1).await.unwrap();
    proxy.strand();
    stranded.write_u8(2).await.unwrap();
    ask(&mut open(&proxy).await, 3).await.unwrap();
    assert_eq!((hears.recv().await, hears.recv().await), (Some(1), Some(3)));
    // Nobody was told: the end comes only now.
    proxy.cut();
    assert!(stranded.read_u8().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_delay_costs_each_round_trip_once() {
    let (url, _hears) = echo().await;
    let proxy = FaultProxy::start(&url).await;
    let mut client = open(&proxy).await;
    proxy.set(Fault::Delay(Duration::from_millis(200)));
    let start = tokio::time::Instant::now();
    ask(&mut client, 1).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));
}
