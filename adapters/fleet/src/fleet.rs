//! From an address to a member.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use paceline::{Clock, MonotonicClock, SendRate};
use tokio::{runtime::Handle, sync::watch};

use crate::budget::Budget;
use crate::engine::Engine;
use crate::fault::FleetError;
use crate::pool::Pool;
use crate::settings::{Away, Settings, milli, name, within};
use crate::snapshot::BudgetSnapshot;
use crate::task::Task;

/// An engine that fleets meet at: one connection, for any number of scopes.
///
/// Clones share the connection. It is made by the first ask, and again after each fault.
///
/// # Examples
///
/// ```
/// use paceline_fleet::Fleet;
///
/// let fleet = Fleet::connect("redis://worker:sesame@127.0.0.1:6379/3")?;
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

impl Fleet {
    /// Reads the address of an engine: `redis://`, `unix://`, and with the feature `tls` `rediss://`, with user and
    /// password as they are needed. Keys begin with `paceline`.
    ///
    /// # Errors
    ///
    /// [`FleetError::Address`] if that is no address. Whether somebody answers there turns out later.
    pub fn connect(address: &str) -> Result<Self, FleetError> {
        Self::connect_in(address, "paceline")
    }

    /// As [`connect`](Self::connect), with keys that begin with `namespace`.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and [`FleetError::Name`] for the namespace.
    pub fn connect_in(address: &str, namespace: &str) -> Result<Self, FleetError> {
        let engine = Engine::new(address, name("namespace", namespace)?)?;
        Ok(Self {
            engine: Arc::new(engine),
        })
    }

    /// Begins to join a scope that is allowed `tokens` sends in each `per`, by all its members together.
    ///
    /// Where members disagree on the allowance, the least of what was said in the last turn holds.
    ///
    /// # Errors
    ///
    /// For a name or a rate out of range.
    pub fn scope(&self, scope: &str, tokens: u32, per: Duration) -> Result<Scope, FleetError> {
        Ok(Scope {
            engine: Arc::clone(&self.engine),
            name: name("scope", scope)?,
            settings: Settings::new(tokens, per)?,
            clock: None,
            local: None,
        })
    }
}

/// What a member is to be like, before it joins.
///
/// | setting | default | range |
/// |---|---|---|
/// | initial rate, of a scope that was never throttled | the allowance | up to the allowance |
/// | floor, under which throttles do not take the rate | 0.5/s | up to the allowance |
/// | lease, what a member may hold, as a time at its share | 200 ms | 20 ms to 10 s |
/// | validity of what it holds, after it was asked for | 1 s | twice the lease to 60 s |
/// | burst, what the engine keeps for those who come late, as a time at the rate | 100 ms | 1 ms to 10 s |
/// | patience with the engine | 250 ms | 1 ms to 10 s |
/// | when the engine is away | alone at the last share | |
#[derive(Clone, Debug)]
#[must_use = "nobody has joined yet"]
pub struct Scope {
    engine: Arc<Engine>,
    name: String,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
    local: Option<Arc<SendRate>>,
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
        let rate = milli(setting, tokens, per)?;
        if rate > self.settings.allowance {
            return Err(FleetError::AboveAllowance { setting });
        }
        Ok(rate)
    }

    /// Sets how much a member may hold, as a time at its share. Longer leases ask the engine less often. The validity
    /// becomes five times that, if it was not longer.
    ///
    /// # Errors
    ///
    /// Outside 20 ms to 10 s.
    pub fn lease(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.lease = within("lease", span, Duration::from_millis(20), most)?;
        self.settings.valid = self.settings.valid.max(span.saturating_mul(5));
        Ok(self)
    }

    /// Sets how long tokens are good after they were asked for. A member that is silent for twice as long is forgotten.
    ///
    /// # Errors
    ///
    /// Under twice the lease, or above 60 s.
    pub fn validity(mut self, span: Duration) -> Result<Self, FleetError> {
        let least = self.settings.lease.saturating_mul(2);
        self.settings.valid = within("validity", span, least, Duration::from_secs(60))?;
        Ok(self)
    }

    /// Sets what the engine keeps for those who come late, as a time at the fleet's rate.
    ///
    /// # Errors
    ///
    /// Outside 1 ms to 10 s.
    pub fn burst(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.burst = within("burst", span, Duration::from_millis(1), most)?;
        Ok(self)
    }

    /// Sets how long an ask may take. No request waits for it; the next ask does.
    ///
    /// # Errors
    ///
    /// Outside 1 ms to 10 s.
    pub fn patience(mut self, span: Duration) -> Result<Self, FleetError> {
        let most = Duration::from_secs(10);
        self.settings.patience = within("patience", span, Duration::from_millis(1), most)?;
        Ok(self)
    }

    /// Sets what becomes of requests while the engine is away.
    pub fn when_away(mut self, away: Away) -> Self {
        self.settings.away = away;
        self
    }

    /// Sets the monotonic clock of this member. Nobody else's has to agree with it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Asks `local` too, for each send: a limit of one's own under that of the fleet.
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
    /// [`FleetError::NoRuntime`] outside of a tokio run time.
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
            pool: Arc::clone(&pool),
            shown,
        };
        runtime.spawn(task.run());
        Ok(Budget::new(pool, clock, self.local, seen))
    }
}
