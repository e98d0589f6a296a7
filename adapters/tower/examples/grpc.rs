//! A client of tonic's, with retries:
//! `cargo run --example grpc --features grpc -- http://localhost:50051 /pkg.Service/Call`.
//!
//! The call has an empty message. Generated clients take the same channel.

use std::env::args;

use bytes::{Buf, Bytes};
use http::Request;
use paceline::Adaptive;
use paceline_tower::{BoxError, Replayed, RetryLayer};
use tonic::{
    Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (Some(url), Some(path)) = (args().nth(1), args().nth(2)) else {
        println!("usage: grpc URL /PACKAGE.SERVICE/METHOD");
        return Ok(());
    };
    let channel = ServiceBuilder::new()
        .layer(RetryLayer::grpc(Adaptive::paced()))
        .map_request(|call: Request<Replayed<Body>>| call.map(Body::new))
        .service(Channel::from_shared(url)?.connect_lazy());
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let answer = client.unary(tonic::Request::new(()), path.parse()?, Empty);
    match answer.await {
        Ok(answer) => println!("{} bytes", answer.get_ref().len()),
        Err(status) => println!("{status}"),
    }
    Ok(())
}

/// Sends nothing, and takes what comes.
#[derive(Debug)]
struct Empty;

impl Codec for Empty {
    type Encode = ();
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Empty {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for Empty {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
