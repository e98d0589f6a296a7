//! From an address to a member.

use core::fmt;
use core::time::Duration;
#[cfg(feature = "local")]
use std::path::PathBuf;
use std::sync::Arc;

use paceline::{Clock, MonotonicClock, SendRate};
use redis::Client;
use tokio::{runtime::Handle, sync::watch};

use crate::budget::Budget;
use crate::engine::Engine;
use crate::fault::FleetError;
use crate::pool::Pool;
use crate::settings::{Away, LONGEST, Settings, name, nano, within};
use crate::snapshot::BudgetSnapshot;
use crate::task::{Listener, Shown, Task};

/// An engine that fleets meet at: a file or a server, for any number of scopes.
///
/// Clones share the connection. It is made by the first ask, and again after each fault.
///
/// # Examples
///
/// ```
/// use paceline_fleet::Fleet;
///
/// let fleet = Fleet::open("redis://worker:sesame@127.0.0.1:6379/3")?;
/// assert!(!format!("{fleet:?}").contains("sesame"));
/// # Ok::<(), paceline_fleet::FleetError>(())
/// ```
#[derive(Clone)]
pub struct Fleet {
    pub(crate) engine: Arc<Engine>,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fleet").field(&self.engine).finish()
    }
}

/// What keys begin with by default.
const NAMESPACE: &str = "paceline";

impl Fleet {
    /// Connects to an engine, and checks that it can be used: a member joins a scope that expires
    /// at once, and leaves it. A replica, missing rights and full memory are refused.
    /// [`builder`](Self::builder) has more settings.
    ///
    /// It takes up to 4 s. A program that has to start without the engine too begins with
    /// [`open`](Self::open).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline_fleet::{EngineFault, Fleet, FleetError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let refused = Fleet::connect("redis://127.0.0.1:1").await;
    /// assert!(matches!(
    ///     refused,
    ///     Err(FleetError::Engine { fault: EngineFault::Unreachable, .. })
    /// ));
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FleetError::Engine`] with the fault: [`EngineFault::Cluster`](crate::EngineFault::Cluster)
    /// for a node of a cluster. [`FleetError::Address`] if that is not an address,
    /// [`FleetError::NoRuntime`] outside of a tokio runtime.
    pub async fn connect(address: &str) -> Result<Self, FleetError> {
        Self::builder(address).connect().await
    }

    /// Reads the address of an engine: `redis://`, `unix://`, and with the feature `tls`
    /// `rediss://`, with user and password as they are needed.
    ///
    /// The first ask connects. If the engine cannot be used then, members do as with an engine that
    /// is away, and [`Budget::snapshot`] shows the fault.
    ///
    /// # Errors
    ///
    /// [`FleetError::Address`] if that is not an address, [`FleetError::NoTls`] for `rediss://`
    /// without the feature `tls`.
    pub fn open(address: &str) -> Result<Self, FleetError> {
        Self::builder(address).build()
    }

    /// Meets at a file, for the processes of one machine: no server is needed. The file is made if
    /// there is none; its folder has to be there.
    ///
    /// Members ask it as they ask a server, by the same script, in a thread of this process. A
    /// process that is killed at any point leaves the file as it was before or after its last step.
    /// The file has to lie on a disk of this machine, and not on a network's. It keeps a silent
    /// scope for a day. Beside it lie two more with its name and `-wal` or `-shm`: delete the three
    /// together to reset all scopes.
    ///
    /// This opens the file, which takes milliseconds, and refuses a file that cannot be used. A file
    /// that others have locked for a quarter of a second is opened later. If the file cannot be used
    /// later, members do as with an engine that is away, and [`Budget::snapshot`] shows the fault.
    ///
    /// Call this after a `fork`, not before it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Outcome;
    /// use paceline_fleet::{Fleet, FleetError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), FleetError> {
    /// # let folder = std::env::temp_dir().join(format!("paceline-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let fleet = Fleet::local(folder.join("limits"))?;
    /// let budget = fleet.scope("orders-table", 10, Duration::from_secs(1))?.join()?;
    /// let permit = budget.acquire().await; // send, and then:
    /// budget.record(permit, Outcome::NotThrottled);
    /// assert_eq!(budget.snapshot().fault, None);
    /// # drop(budget);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FleetError::Address`] for an empty path. [`FleetError::Engine`] with the fault of the file,
    /// or if there can be no thread.
    #[cfg(feature = "local")]
    pub fn local(path: impl Into<PathBuf>) -> Result<Self, FleetError> {
        let path = path.into();
        if path.as_os_str().is_empty() {
            return Err(FleetError::Address);
        }
        let engine = Engine::file(path, NAMESPACE.to_owned());
        let engine = engine.map_err(|fault| FleetError::Engine { fault })?;
        Ok(Self {
            engine: Arc::new(engine),
        })
    }

    /// Checks that the engine can be used: a member joins a scope that expires, and leaves it.
    ///
    /// # Errors
    ///
    /// [`FleetError::Engine`] with the fault.
    pub async fn check(&self) -> Result<(), FleetError> {
        let checked = self.engine.probe().await;
        checked.map_err(|fault| FleetError::Engine { fault })
    }

    /// Begins with the address of an engine, for other settings than the defaults.
    pub fn builder(address: &str) -> FleetBuilder {
        FleetBuilder {
            address: address.to_owned(),
            namespace: NAMESPACE.to_owned(),
            tls: Tls::default(),
        }
    }

    /// Begins to join a scope that is allowed `tokens` sends in each `per`, by all its members
    /// together.
    ///
    /// Where members disagree on the allowance, the least of what was said in the last turn holds.
    ///
    /// # Errors
    ///
    /// For a name or a rate out of range.
    pub fn scope(&self, scope: &str, tokens: u32, per: Duration) -> Result<Scope, FleetError> {
        self.scope_of(scope, Settings::new(tokens, per)?)
    }

    /// Begins to join a scope whose limit is not known: throttles tell it to all members.
    ///
    /// It begins at 10/s, and doubles every half second while all of that is used, until the first
    /// throttle. The limit may be of seconds, or of a window of minutes or hours. While the service
    /// lets nothing through, one request of one member asks for all. The floor is 1 in 1,000 s.
    ///
    /// # Errors
    ///
    /// For a name out of range.
    pub fn unknown(&self, scope: &str) -> Result<Scope, FleetError> {
        self.scope_of(scope, Settings::unknown())
    }

    fn scope_of(&self, scope: &str, settings: Settings) -> Result<Scope, FleetError> {
        Ok(Scope {
            engine: Arc::clone(&self.engine),
            name: name("scope", scope)?,
            settings,
            clock: None,
            local: None,
            listener: None,
        })
    }
}

/// The certificates of a connection, as PEM.
#[derive(Clone, Default)]
struct Tls {
    #[cfg(feature = "tls")]
    roots: Option<Vec<u8>>,
    #[cfg(feature = "tls")]
    client: Option<(Vec<u8>, Vec<u8>)>,
}

/// How to reach an engine.
///
/// # Examples
///
/// ```
/// use paceline_fleet::Fleet;
///
/// let fleet = Fleet::builder("redis://127.0.0.1:6379").namespace("billing").build()?;
/// # Ok::<(), paceline_fleet::FleetError>(())
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is built"]
pub struct FleetBuilder {
    address: String,
    namespace: String,
    tls: Tls,
}

impl fmt::Debug for FleetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBuilder")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl FleetBuilder {
    /// Sets what keys begin with: `paceline` by default, 1 to 256 bytes.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Sets the certificates, as PEM, of the authorities that may have signed the engine's
    /// certificate.
    ///
    /// By default those of the system are.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: &[u8]) -> Self {
        self.tls.roots = Some(pem.to_vec());
        self
    }

    /// Sets the certificate and the private key, both as PEM, that this client shows to the engine.
    #[cfg(feature = "tls")]
    pub fn client_certificate(mut self, certificate: &[u8], key: &[u8]) -> Self {
        self.tls.client = Some((certificate.to_vec(), key.to_vec()));
        self
    }

    /// Checks the settings, connects, and checks that the engine can be used, as
    /// [`Fleet::connect`] does.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build) and of [`Fleet::connect`].
    pub async fn connect(self) -> Result<Fleet, FleetError> {
        let fleet = self.build()?;
        let _runtime = Handle::try_current().map_err(|_| FleetError::NoRuntime)?;
        fleet.check().await?;
        Ok(fleet)
    }

    /// Checks the settings. A connection is only made by the first ask, as after [`Fleet::open`].
    ///
    /// With `rediss://` the process gets *ring* as the provider of cryptography for rustls, unless
    /// it has one.
    ///
    /// # Errors
    ///
    /// [`FleetError::Address`] if the address is not one, [`FleetError::NoTls`] for `rediss://`
    /// without the feature `tls`, [`FleetError::Name`] for the namespace, and
    /// [`FleetError::Certificate`] for certificates or a key that are not PEM, or an address
    /// without TLS.
    pub fn build(self) -> Result<Fleet, FleetError> {
        let is_tls = ["rediss:", "valkeys:"].map(|scheme| self.address.starts_with(scheme));
        if cfg!(not(feature = "tls")) && is_tls.contains(&true) {
            return Err(FleetError::NoTls);
        }
        let client = Client::open(self.address.as_str()).map_err(|_| FleetError::Address)?;
        let client = self.tls.of(client)?;
        let engine = Engine::server(client, name("namespace", &self.namespace)?);
        Ok(Fleet {
            engine: Arc::new(engine),
        })
    }
}

impl Tls {
    #[cfg(feature = "tls")]
    fn of(self, client: Client) -> Result<Client, FleetError> {
        use redis::{ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, TlsCertificates};

        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have been faster: then there is one.
            let _other = rustls::crypto::ring::default_provider().install_default();
        }
        if self.roots.is_none() && self.client.is_none() {
            return Ok(client);
        }
        let is_tls = matches!(
            client.get_connection_info().addr(),
            ConnectionAddr::TcpTls { .. }
        );
        let is_empty = |pem: &[u8]| !pem.windows(10).any(|part| part == b"-----BEGIN");
        let roots_empty = self.roots.as_deref().is_some_and(is_empty);
        let client_empty =
            matches!(&self.client, Some((own, key)) if is_empty(own) || is_empty(key));
        if !is_tls || roots_empty || client_empty {
            return Err(FleetError::Certificate);
        }
        let certificates = TlsCertificates {
            client_tls: self
                .client
                .map(|(client_cert, client_key)| ClientTlsConfig {
                    client_cert,
                    client_key,
                }),
            root_cert: self.roots,
        };
        let info = client.get_connection_info().clone().into_connection_info();
        info.and_then(|info| Client::build_with_tls(info, certificates))
            .map_err(|_| FleetError::Certificate)
    }

    #[cfg(not(feature = "tls"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with the feature"
    )]
    fn of(self, client: Client) -> Result<Client, FleetError> {
        Ok(client)
    }
}

/// What a member is to be like, before it joins.
///
/// | setting | default | range |
/// |---|---|---|
/// | initial rate, of a scope that was never throttled | the allowance | up to the allowance |
/// | floor, under which throttles do not take the rate | 0.5/s | up to the allowance |
/// | lease, what a member may hold, as a time at its share | 200 ms | 20 ms to 10 s |
/// | validity of what it holds, after it was asked for | five leases, at most 30 s | twice the lease to 30 s |
/// | burst, what the engine keeps for members that ask late, as a time at the rate | half a lease | 1 ms to 10 s |
/// | weight, how large its share is beside others' | 1 | 1 to 1,000 |
/// | safe rate, the least that it sends alone | none, or the floor for one that never had a share | up to the allowance |
/// | patience with the engine | 250 ms | 1 ms to 10 s |
/// | when the engine is away | alone at the last share | |
#[derive(Clone)]
#[must_use = "a scope does nothing until it is joined"]
pub struct Scope {
    engine: Arc<Engine>,
    name: String,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
    local: Option<Arc<SendRate>>,
    listener: Option<Listener>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Scope {
    /// Sets the rate of a scope that was never throttled.
    ///
    /// # Errors
    ///
    /// For a rate that is out of range or above the allowance.
    pub fn initial_rate(mut self, tokens: u32, per: Duration) -> Result<Self, FleetError> {
        self.settings.initial = self.below_allowance("initial rate", tokens, per)?;
        Ok(self)
    }

    /// Sets the rate under which throttles do not take the fleet.
    ///
    /// # Errors
    ///
    /// For a rate that is out of range or above the allowance.
    pub fn floor(mut self, tokens: u32, per: Duration) -> Result<Self, FleetError> {
        self.settings.floor = self.below_allowance("floor", tokens, per)?;
        Ok(self)
    }

    fn below_allowance(
        &self,
        setting: &'static str,
        tokens: u32,
        per: Duration,
    ) -> Result<u64, FleetError> {
        let rate = nano(setting, tokens, per)?;
        if rate > self.settings.allowance {
            return Err(FleetError::AboveAllowance { setting });
        }
        Ok(rate)
    }

    /// Sets how much a member may hold, as a time at its share. Longer leases ask the engine less
    /// often.
    ///
    /// The burst and the validity follow, unless they are set. Where the engine is more than a
    /// fifth of this away, a member holds more: half of this, and two and a half round trips.
    ///
    /// # Errors
    ///
    /// Outside 20 ms to 10 s.
    pub fn lease(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.lease = within("lease", span, Duration::from_millis(20), most)?;
        Ok(self)
    }

    /// Sets how long tokens are good after they were asked for. A member that is silent for twice
    /// as long is forgotten.
    ///
    /// # Errors
    ///
    /// Under twice the lease, or above 30 s.
    pub fn validity(mut self, span: Duration) -> Result<Self, FleetError> {
        let least = self.settings.lease.saturating_mul(2);
        self.settings.valid = Some(within("validity", span, least, LONGEST)?);
        Ok(self)
    }

    /// Sets what the engine keeps for members that ask late, as a time at the fleet's rate.
    ///
    /// # Errors
    ///
    /// Outside 1 ms to 10 s.
    pub fn burst(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.burst = Some(within("burst", span, Duration::from_millis(1), most)?);
        Ok(self)
    }

    /// Sets how large this member's share is beside those of others: a member of weight 2 gets
    /// twice as much as one of 1.
    ///
    /// # Errors
    ///
    /// [`FleetError::Weight`] outside 1 to 1,000.
    pub fn weight(mut self, weight: u32) -> Result<Self, FleetError> {
        if !(1..=1_000).contains(&weight) {
            return Err(FleetError::Weight { weight });
        }
        self.settings.weight = weight;
        Ok(self)
    }

    /// Sets the least that this member sends with [`Away::Alone`], and all that it sends if it has
    /// not seen the engine since it joined.
    ///
    /// By default there is no such rate, and the floor for a member without a share. Members that
    /// start while the engine is away send at most the sum of their safe rates together. The
    /// allowance divided by the number of members is a good value, as is the share that the last
    /// process on this host had.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline_fleet::{Fleet, FleetError};
    ///
    /// # fn read_saved_share() -> u32 { 125_500 }
    /// let saved = read_saved_share(); // `snapshot().share`, in thousandths of a token per second
    /// let scope = Fleet::open("redis://127.0.0.1:6379")?.scope("orders", 2_000, Duration::from_secs(1))?;
    /// let scope = scope.safe_rate(saved, Duration::from_secs(1_000))?; // 125.5/s
    /// # Ok::<(), FleetError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// For a rate that is out of range or above the allowance.
    pub fn safe_rate(mut self, tokens: u32, per: Duration) -> Result<Self, FleetError> {
        self.settings.safe = Some(self.below_allowance("safe rate", tokens, per)?);
        Ok(self)
    }

    /// Calls `listener` with the new snapshot whenever the standing or the fault changes, from the
    /// member's task.
    ///
    /// It must not block: the task asks the engine for tokens. A panic of it is caught.
    pub fn on_change(mut self, listener: impl Fn(BudgetSnapshot) + Send + Sync + 'static) -> Self {
        self.listener = Some(Listener(Arc::new(listener)));
        self
    }

    /// Sets how long an ask may take, beside two round trips as measured when the connection was
    /// made.
    ///
    /// No request waits for it; the next ask does.
    ///
    /// # Errors
    ///
    /// Outside 1 ms to 10 s.
    pub fn patience(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.patience = within("patience", span, Duration::from_millis(1), most)?;
        Ok(self)
    }

    /// Sets how requests are handled while the engine is away.
    pub fn when_away(mut self, away: Away) -> Self {
        self.settings.away = away;
        self
    }

    /// Sets the monotonic clock of this member. The clocks of other members need not agree with it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Also takes each send from `local`: a limit for this process, under that of the fleet.
    ///
    /// It has to be timed by the clock of this member.
    pub fn over(mut self, local: Arc<SendRate>) -> Self {
        self.local = Some(local);
        self
    }

    /// Joins, and starts the member's task.
    ///
    /// # Errors
    ///
    /// [`FleetError::NoRuntime`] outside of a tokio runtime.
    pub fn join(self) -> Result<Budget, FleetError> {
        let runtime = Handle::try_current().map_err(|_| FleetError::NoRuntime)?;
        let clock = self
            .clock
            .unwrap_or_else(|| Arc::new(MonotonicClock::new()));
        let pool = Arc::new(Pool::new());
        let (shown, seen) = watch::channel(BudgetSnapshot::default());
        let task = Task {
            engine: self.engine,
            clock: Arc::clone(&clock),
            settings: self.settings,
            scope: self.name,
            shown: Shown::new(Arc::clone(&pool), shown, self.listener),
            pool: Arc::clone(&pool),
        };
        runtime.spawn(task.run());
        Ok(Budget::new(pool, clock, self.local, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn scope() -> Scope {
        let fleet = Fleet::open("redis://127.0.0.1:1/").expect("an address");
        fleet.scope("x", 1_000, SECOND).expect("in range")
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn an_address_of_tls_names_the_feature_that_is_missing() {
        for address in ["rediss://cache:6379", "valkeys://cache:6379"] {
            let error = Fleet::open(address).unwrap_err();
            let text = "rediss:// needs the feature `tls` of paceline-fleet";
            assert_eq!(
                (error.to_string().as_str(), error),
                (text, FleetError::NoTls)
            );
        }
    }

    #[test]
    fn a_rate_is_taken_up_to_the_allowance() {
        let floor = |tokens| {
            scope()
                .floor(tokens, SECOND)
                .map(|scope| scope.settings.floor)
        };
        assert_eq!(floor(20), Ok(20_000_000_000));
        assert_eq!(floor(1_000), Ok(1_000_000_000_000));
        let above = FleetError::AboveAllowance { setting: "floor" };
        assert_eq!(floor(1_001), Err(above));
    }

    #[test]
    fn what_is_shown_has_no_address() {
        let builder = Fleet::builder("redis://worker:sesame@127.0.0.1:1/").namespace("billing");
        assert_eq!(
            format!("{builder:?}"),
            "FleetBuilder { namespace: \"billing\", .. }"
        );
        let fleet = builder.build().expect("an address");
        assert_eq!(
            format!("{fleet:?}"),
            "Fleet(Engine { namespace: \"billing\", .. })"
        );
        let shown = format!("{:?}", scope());
        assert!(
            shown.starts_with("Scope { name: \"x\", settings: Settings { "),
            "{shown}"
        );
        let budget = fleet.retry_budget("y", 60).expect("in range");
        let shown = "RetryScope { name: \"y\", capacity: 60, hold: 50, away: Alone, .. }";
        assert_eq!(format!("{budget:?}"), shown);
    }

    #[test]
    fn a_weight_is_1_to_1_000() {
        let weight = |weight| scope().weight(weight).map(|scope| scope.settings.weight);
        assert_eq!((weight(1), weight(1_000)), (Ok(1), Ok(1_000)));
        for wrong in [0, 1_001] {
            assert_eq!(weight(wrong), Err(FleetError::Weight { weight: wrong }));
        }
    }
}
