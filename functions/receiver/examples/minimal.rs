//! The least that a Lambda behind an HTTP API can be: what the receiver's start is
//! compared with, built the same way. See `cargo xtask bench cold`.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let answer = |_request: Request| async {
        Ok::<_, Error>(Response::builder().status(200).body(Body::Empty)?)
    };
    run(service_fn(answer)).await
}
