//! OUT-16 and OUT-19: what may be called, at save and at send.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hookstead_domain::ErrorClass;
use hookstead_egress::{AllowList, Egress, EgressSettings, SystemResolver, Target, TargetError};

use crate::server::{Server, answer_all, ok};
use crate::support::{NAME, Scripted, http, post, settings, values};

/// Literal addresses that lead nowhere public.
const PRIVATE: [&str; 26] = [
    "127.0.0.1",
    "10.0.0.5",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "172.16.0.1",
    "192.168.0.1",
    "192.0.0.192",
    "198.18.0.1",
    "192.88.99.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[fd00::1]",
    "[fe90::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001::1]",
];

/// A client with the settings of production, that would be able to dial anything.
fn production() -> Egress {
    Egress::new(EgressSettings::default()).unwrap()
}

#[tokio::test]
async fn out_16_private_targets_are_refused_at_save_and_at_send() {
    let client = production();
    for host in PRIVATE {
        for url in [format!("https://{host}/"), format!("http://{host}:8080/x")] {
            assert_eq!(
                Target::parse(&url, true),
                Err(TargetError::AddressNotAllowed),
                "{url}"
            );
            let failure = client.send(post(url.as_str())).await.unwrap_err();
            assert_eq!(failure.class, ErrorClass::AddressNotAllowed, "{url}");
            assert_eq!(failure.detail, "address_not_allowed", "{url}");
        }
    }
    for url in [
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:8443/",
        "https://[::ffff:8.8.8.8]/",
    ] {
        assert!(Target::parse(url, false).is_ok(), "{url}");
    }
}

#[tokio::test]
async fn out_16_a_name_with_a_private_address_is_refused_at_send() {
    for host in PRIVATE {
        let address = host.trim_matches(['[', ']']);
        // Also where other addresses of the name are public.
        for answers in [
            &[address][..],
            &["93.184.216.34", address],
            &[address, "8.8.8.8"],
        ] {
            let client = Egress::new(EgressSettings {
                resolver: Scripted::new(&[answers]),
                ..EgressSettings::default()
            });
            let failure = client.unwrap().send(post(http(80))).await.unwrap_err();
            assert_eq!(failure.class, ErrorClass::AddressNotAllowed, "{address}");
            assert_eq!(failure.detail, "dns_address", "{address}");
        }
    }
}

#[tokio::test]
async fn out_16_a_refused_server_is_never_connected_to() {
    let server = Server::answering(ok("CANARY")).await;
    let client = Egress::new(EgressSettings {
        resolver: Scripted::new(&[&["127.0.0.1"]]),
        ..EgressSettings::default()
    })
    .unwrap();
    for host in [
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "localhost",
        "127.1",
        NAME,
    ] {
        let url = format!("http://{host}:{}/", server.port());
        let failure = client.send(post(url)).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::AddressNotAllowed, "{host}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_allowed_private_address_can_be_called_in_every_spelling() {
    let server = Server::answering(ok("fine")).await;
    let client = Egress::new(settings()).unwrap();
    for host in [
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.1",
    ] {
        let url = format!("http://{host}:{}/", server.port());
        assert!(client.target(&url, true).is_ok(), "{host}");
        let answer = client.send(post(url)).await.unwrap();
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn out_19_the_connection_goes_to_the_address_that_was_checked() {
    // The name has an allowed address first, and a private one when asked again.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let server = Server::start(|mut session| async move {
        session.request().await;
        session
            .say(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await;
    })
    .await;
    let private = server.neighbour(Ipv4Addr::new(127, 0, 0, 2));
    let mut settings = settings();
    settings.resolver = Arc::<Scripted>::clone(&resolver);
    let client = Egress::new(settings).unwrap();

    let answer = client.send(post(http(server.port()))).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(resolver.asked(), 1, "it is asked once per connection");
    let request = &server.requests()[0];
    assert_eq!(
        values(request, "host"),
        [format!("{NAME}:{}", server.port())]
    );

    let failure = client.send(post(http(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::AddressNotAllowed);
    assert_eq!(resolver.asked(), 2);
    assert_eq!((server.connections(), private.connections()), (1, 0));
}

#[tokio::test]
async fn out_19_a_kept_connection_stays_where_it_was_checked() {
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let server = Server::start(|session| answer_all(session, ok("fine"))).await;
    let private = server.neighbour(Ipv4Addr::new(127, 0, 0, 2));
    let mut settings = settings();
    settings.resolver = Arc::<Scripted>::clone(&resolver);
    let client = Egress::new(settings).unwrap();
    for _ in 0..2 {
        client.send(post(http(server.port()))).await.unwrap();
    }
    assert_eq!(resolver.asked(), 1);
    assert_eq!((server.connections(), private.connections()), (1, 0));
}

#[tokio::test]
async fn the_resolver_of_the_machine_is_checked_like_any_other() {
    // A name that every machine knows, and that is no literal for the client.
    let client = Egress::new(EgressSettings {
        resolver: Arc::new(SystemResolver),
        ..EgressSettings::default()
    });
    let host = std::env::var("HOSTNAME").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let Ok(host) = host else { return };
    let url = format!("http://{}:9/", host.trim());
    let failure = client.unwrap().send(post(url)).await.unwrap_err();
    let refused = [ErrorClass::AddressNotAllowed, ErrorClass::DnsFailure];
    assert!(refused.contains(&failure.class), "{}", failure.class);
}

#[test]
fn exceptions_hold_for_saving_as_well() {
    let allowed: AllowList = "10.20.0.0/16".parse().unwrap();
    let parse = |url| Target::parse_allowing(url, false, &allowed);
    assert!(parse("https://10.20.1.2/").is_ok());
    assert!(parse("https://[::ffff:10.20.1.2]/").is_ok());
    assert_eq!(
        parse("https://10.21.1.2/"),
        Err(TargetError::AddressNotAllowed)
    );
    assert_eq!(
        parse("https://localhost/"),
        Err(TargetError::AddressNotAllowed)
    );
}
