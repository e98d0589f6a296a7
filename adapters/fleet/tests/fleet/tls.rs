//! TLS to the engine, with certificates that are made here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use paceline_fleet::{Away, EngineFault, Fleet, FleetBuilder, FleetError, Standing};

use crate::rig::engine::{Engine, free_port};
use crate::scene::alone;

/// An authority, and what it has signed for the engine and for a member.
#[derive(Debug)]
struct Certificates(PathBuf);

impl Certificates {
    /// Makes them with `openssl`, or returns `None` and says so if there is none.
    fn make(name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("there is room");
        let made = Self(folder);
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        let authority = format!("req -x509 {key} -subj /CN=authority -keyout ca.key -out ca.crt");
        if !made.openssl(&authority) {
            println!("skipped: there is no openssl");
            return None;
        }
        // A day of none is over when it is signed.
        for (name, days) in [("engine", 2), ("member", 2), ("late", 0)] {
            std::fs::write(made.0.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("room");
            let wish =
                format!("req -new {key} -subj /CN={name} -keyout {name}.key -out {name}.csr");
            let sign = format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {days} -extfile names -out {name}.crt"
            );
            assert!(made.openssl(&wish) && made.openssl(&sign), "{name}");
        }
        Some(made)
    }

    fn openssl(&self, words: &str) -> bool {
        let status = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(&self.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn pem(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).expect("it was made")
    }
}

/// Connects, once more where a busy machine is late.
async fn connects(builder: FleetBuilder) -> Result<Fleet, FleetError> {
    for _ in 0..5 {
        let connected = builder.clone().connect().await;
        let late = EngineFault::TimedOut;
        if !matches!(connected, Err(FleetError::Engine { fault, .. }) if fault == late) {
            return connected;
        }
    }
    panic!("five attempts were late");
}

#[tokio::test]
async fn only_the_right_certificates_open_the_engine() {
    let _alone = alone();
    let (Some(made), Some(other)) = (Certificates::make("right"), Certificates::make("wrong"))
    else {
        return;
    };
    let port = free_port().to_string();
    let [authority, certificate, key] =
        ["ca.crt", "engine.crt", "engine.key"].map(|name| made.path(name));
    let options = [
        "--tls-port",
        &port,
        "--tls-ca-cert-file",
        &authority,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "yes",
    ];
    let Some(_engine) = Engine::start(&options) else {
        return;
    };
    let address = format!("rediss://127.0.0.1:{port}/");
    let builder = || Fleet::builder(&address);
    let member = |from: &Certificates| (from.pem("member.crt"), from.pem("member.key"));
    let (late, late_key) = (made.pem("late.crt"), made.pem("late.key"));
    let ((own, own_key), (strange, strange_key)) = (member(&made), member(&other));
    let (roots, strangers) = (made.pem("ca.crt"), other.pem("ca.crt"));

    let right = builder()
        .root_certificates(&roots)
        .client_certificate(&own, &own_key);
    let fleet = connects(right).await.expect("it is let in");
    let scope = fleet.scope("tls", 1_000, Duration::from_secs(1)).unwrap();
    let budget = scope.when_away(Away::Closed).join().unwrap();
    let leased = async {
        while budget.snapshot().standing != Standing::Leased {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), leased).await;
    waited.expect("it has a lease");
    let wrong = [
        builder(),                           // the system's authorities did not sign it
        builder().root_certificates(&roots), // no certificate to show
        builder()
            .root_certificates(&roots)
            .client_certificate(&strange, &strange_key),
        builder()
            .root_certificates(&strangers)
            .client_certificate(&own, &own_key),
        builder()
            .root_certificates(&roots)
            .client_certificate(&late, &late_key),
        builder()
            .root_certificates(&roots)
            .client_certificate(&own, &late_key),
    ];
    for (place, wrong) in wrong.into_iter().enumerate() {
        let fault = match connects(wrong).await {
            Err(FleetError::Engine { fault, .. }) => Some(fault),
            _ => None,
        };
        assert_eq!(fault, Some(EngineFault::Certificate), "{place}");
    }
}

#[test]
fn what_is_no_certificate_is_an_error_at_once() {
    let wrong = |builder: FleetBuilder| builder.build().map(drop).unwrap_err();
    let secure = || Fleet::builder("rediss://127.0.0.1:1/");
    for text in ["x", "longer than a mark of PEM"] {
        let text = text.as_bytes();
        let roots = secure().root_certificates(text);
        assert_eq!(wrong(roots), FleetError::Certificate);
        let client = secure().client_certificate(text, text);
        assert_eq!(wrong(client), FleetError::Certificate);
    }
    let pem = b"-----BEGIN CERTIFICATE-----";
    let plain = Fleet::builder("redis://127.0.0.1:1/").root_certificates(pem);
    assert_eq!(wrong(plain), FleetError::Certificate);
}
