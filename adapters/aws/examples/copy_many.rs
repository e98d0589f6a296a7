//! Copies one object many times under one prefix of an S3 server, with a chosen retry mode.
//!
//! `cargo run --example copy_many -- --endpoint http://127.0.0.1:9100 --mode paced`
//!
//! The bucket `pipeline` and the object `source` in it have to be there. `ci/s3.sh` runs it against
//! a server behind a real rate limiter, mode after mode.

extern crate alloc;

use alloc::sync::Arc;
use core::{
    error::Error,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use std::{env, process::ExitCode, time::Instant};

use aws_sdk_s3::{
    Client,
    config::{BehaviorVersion, Builder, Credentials, Region, retry::RetryConfig},
    error::DisplayErrorContext,
};
use paceline::{Adaptive, ControlLaw, classify::ServiceUnavailable, law::PacedSettings};
use paceline_aws::Pacing;

const BUCKET: &str = "pipeline";
const SOURCE: &str = "source";

/// What retries and paces.
#[derive(Clone, Copy, Debug)]
enum Mode {
    SdkStandard,
    SdkAdaptive,
    /// The law of the SDK's adaptive mode, by paceline.
    AwsLaw,
    Paced,
    /// Until the service lets it through.
    Bulk,
    /// At a rate that is given, as a client that knows the limit.
    Fixed,
}

impl Mode {
    const ALL: [(&str, Self); 6] = [
        ("sdk-standard", Self::SdkStandard),
        ("sdk-adaptive", Self::SdkAdaptive),
        ("aws-law", Self::AwsLaw),
        ("paced", Self::Paced),
        ("bulk", Self::Bulk),
        ("fixed", Self::Fixed),
    ];

    fn named(name: &str) -> Result<Self, Box<dyn Error>> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            format!("no mode `{name}`; there are {known}").into()
        })
    }

    /// Puts the mode into a client's configuration.
    fn configure(self, config: Builder, rate: u32) -> Result<Builder, Box<dyn Error>> {
        let adaptive = || Adaptive::builder().max_attempts(4);
        let pacing = match self {
            Self::SdkStandard => return Ok(config.retry_config(RetryConfig::standard())),
            Self::SdkAdaptive => {
                return Ok(config.retry_config(RetryConfig::adaptive().with_max_attempts(4)));
            }
            Self::AwsLaw => Pacing::new(adaptive().law(ControlLaw::Aws).build()?),
            Self::Paced => Pacing::new(adaptive().paced(PacedSettings::new()).build()?),
            Self::Bulk => Pacing::bulk(),
            Self::Fixed => {
                let fixed = PacedSettings::fixed(rate, Duration::from_secs(1))?;
                let strategy = adaptive().bulk().paced(fixed).build()?;
                Pacing::new(strategy).unavailable(ServiceUnavailable::Throttle)
            }
        };
        let http_client = aws_smithy_http_client::Builder::new().build_http();
        Ok(config
            .http_client(pacing.http_client(http_client))
            .interceptor(pacing.interceptor())
            .retry_classifier(pacing.classifier()))
    }
}

#[derive(Debug)]
struct Options {
    endpoint: String,
    mode: Mode,
    copies: u32,
    workers: u32,
    /// Of the mode `fixed`: copies a second.
    rate: u32,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            endpoint: String::new(),
            mode: Mode::Paced,
            copies: 4_003,
            workers: 64,
            rate: 100,
        };
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} wants a value"))?;
            match &*flag {
                "--endpoint" => options.endpoint = value,
                "--mode" => options.mode = Mode::named(&value)?,
                "--copies" => options.copies = value.parse()?,
                "--workers" => options.workers = value.parse()?,
                "--rate" => options.rate = value.parse()?,
                _ => return Err(format!("no option `{flag}`").into()),
            }
        }
        if options.endpoint.is_empty() {
            return Err("--endpoint is missing".into());
        }
        Ok(options)
    }

    fn client(&self) -> Result<Client, Box<dyn Error>> {
        let config = Builder::new()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "testtest", None, None, "example"))
            .endpoint_url(&self.endpoint)
            .force_path_style(true)
            .http_client(aws_smithy_http_client::Builder::new().build_http());
        Ok(Client::from_conf(
            self.mode.configure(config, self.rate)?.build(),
        ))
    }
}

/// Copies until `next` has passed `copies`, and returns how many failed.
async fn work(client: Client, next: Arc<AtomicU32>, copies: u32) -> u32 {
    let mut failed = 0_u32;
    loop {
        // Relaxed: the number itself is all that is shared.
        let number = next.fetch_add(1, Relaxed);
        if number >= copies {
            return failed;
        }
        let copy = client
            .copy_object()
            .bucket(BUCKET)
            .copy_source(format!("{BUCKET}/{SOURCE}"))
            .key(format!("copies/{number:05}"));
        if let Err(error) = copy.send().await {
            if failed == 0 {
                eprintln!("copy {number}: {}", DisplayErrorContext(error));
            }
            failed = failed.saturating_add(1);
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::read(env::args().skip(1))?;
    let client = options.client()?;
    let (next, began) = (Arc::new(AtomicU32::new(0)), Instant::now());
    let workers: Vec<_> = (0..options.workers)
        .map(|_| tokio::spawn(work(client.clone(), next.clone(), options.copies)))
        .collect();
    let mut failed = 0_u32;
    for worker in workers {
        failed = failed.saturating_add(worker.await?);
    }
    let copied = options.copies.saturating_sub(failed);
    println!(
        "{copied} copied, {failed} failed, {:.1} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("copy_many: {error}");
            ExitCode::FAILURE
        }
    }
}
