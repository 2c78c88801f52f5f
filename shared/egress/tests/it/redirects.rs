//! OUT-17: redirects are not followed.

use hookstead_domain::ErrorClass;

use crate::server::{Server, ok};
use crate::support::{client, http, post};

#[tokio::test]
async fn out_17_redirects_are_not_followed() {
    let elsewhere = Server::answering(ok("CANARY")).await;
    let client = client();
    for status in [301, 302, 303, 307, 308] {
        for location in [
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            http(elsewhere.port()),
            format!("http://127.0.0.1:{}/", elsewhere.port()),
        ] {
            let server = Server::answering(format!(
                "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
            ));
            let server = server.await;
            let answer = client.send(post(http(server.port()))).await.unwrap();
            assert_eq!(answer.status, status);
            let outcome = answer.outcome(time::OffsetDateTime::UNIX_EPOCH);
            assert_eq!(outcome.error(), Some(ErrorClass::Redirect));
            assert_eq!(server.requests().len(), 1);
            let kept = serde_json::to_string(&answer.headers).unwrap();
            assert!(!kept.contains("169.254"), "the address is not kept");
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}
