//! One send allowance, or one retry budget, for many processes.
//!
//! A process that adapts by itself needs nobody. But where many share one allowance, an account's limit for one, each by
//! itself takes too much or too little. Here the local buckets stay what they are, and an engine that is there already,
//! Redis (6.2 or later) or Valkey, hands out what they may spend: in leases, ahead of need, to a task of each member.
//! No request ever waits for the network.
//!
//! ```no_run
//! use std::time::Duration;
//! use paceline_fleet::{Fleet, FleetError};
//!
//! # async fn five_lines() -> Result<(), FleetError> {
//! let fleet = Fleet::connect("redis://127.0.0.1:6379")?;
//! let scope = fleet.scope("orders-table", 2_000, Duration::from_secs(1))?;
//! let budget = scope.join()?;
//! let permit = budget.acquire().await; // send, and then:
//! budget.record(permit, paceline::Outcome::NotThrottled);
//! # Ok(())
//! # }
//! ```
//!
//! [`FleetStrategy`] puts a budget before the sends of a strategy, [`Scope::over`] before a [`SendRate`], and
//! [`Fleet::retry_budget`] feeds a [`RetryQuota`] that strategies pay from.
//!
//! # What is promised
//!
//! `R` is the allowance. `C` is what the engine keeps for those who come late: 100 ms at `R`, at least a token. `H` is what
//! all `N` members hold together: a lease, 200 ms at `R`, and a token for each.
//!
//! * **From an empty start, no more is granted in `t` seconds than `R·t`**, whatever members do, crash or repeat. The
//!   engine mints by its own clock, at the rate at the beginning of the time that has passed, and takes each grant from
//!   that in one script; a scope that it does not remember starts empty.
//! * **All members together never hold more than `H`.** Each ask says what the member still holds; the engine adds up what
//!   all said and were granted since, and grants nothing above `H`. What a member holds only shrinks until it asks again, and
//!   what a silent one was granted counts until it has died.
//! * **In any window of `w` seconds no more is sent than `R·w + C + H`.** What is sent was granted in the window: at most
//!   `R·w` that is minted in it and `C` that was kept when it began; or it was granted before, and held when it began: at
//!   most `H`. With the defaults that is 300 ms at the allowance and a token for each member. Requests on their way reach a
//!   service later than they were sent: what it sees in a window may be more by those.
//! * **A lease is paid once.** An ask that is made again has the number of the last one, and gets the same answer.
//! * **Tokens die** a second after the member's last answered ask was made, by its own monotonic clock: one that was stopped
//!   for longer wakes up with none. Nobody's clock has to agree with anybody's: only spans go over the wire.
//! * **After a fail-over** to an engine that knows less, or a restart that forgot, at most `C` is granted a second time:
//!   that is all that any state can hold, and everything else is minted after it. And since what is held is not known until
//!   all have asked, at most `H`, a lease for each, is held twice: around it, a window has `R·w + 2·(C + H)` at most.
//! * **A hostile value** under a key is an error, or worth `C + H` at most each time that it is written; never a panic.
//!
//! Each of these is a test: with members that do as they like and the engine's script in virtual time (`tests/fleet/bounds.rs`),
//! and with real processes and faults (`tests/fleet/faults.rs`).
//!
//! # Shares
//!
//! Four times a second (with over 250 members, once in a millisecond for each) the engine shares the rate out by demand:
//! everyone's is met up to one level, max-min fair. Who wants nothing keeps a tenth of an equal part in reserve, so that it need not
//! wait when it does. A member's part grows at its share whether it asks early or late; what nobody takes is there for those who ask.
//!
//! # Learning
//!
//! A throttle lowers the rate of all. The law is the paced one of the core, and it runs **at the engine**, in the same
//! script: that is where all throttles are seen, in one order, and where there is no turn to hand on when a member is
//! killed or stopped while it has it. It differs from the core's in that a round trip is a request's and a lease's
//! together, since what was granted before a cut is sent after it; in that an unknown limit is looked for from
//! a quarter of the allowance up; and in that rules 7 and 10 have no place: what is delivered was granted, and a fleet
//! always limits. The estimate of what is delivered is what was spent less what was throttled, so that a request that
//! went well need not be told of at all.
//!
//! # When the engine is away
//!
//! Down, slow, partitioned, failing over, out of memory, with another password: a member spends its lease, and two leases
//! after the last answer, or at the end of the lease's validity, does as [`Away`] says. With [`Away::Closed`] the bounds
//! above hold without exception. With [`Away::Alone`] a member goes on at its last share: if all are cut off they go on at
//! `R` together; if one is cut off while the others are not, the others get its share after two seconds, and as long as that
//! lasts the fleet may send `R` and the last shares of those cut off. A member that is too busy to hear the engine within
//! its patience is one of those.
//!
//! Away from it, a member asks four times a second, so that 0.3 s after the engine is back all are in line, each with the
//! first answer and without what it had granted itself. There is no burst: the engine notices the gap, drops what was minted
//! in it, forgets nobody for it, and for half a second gives each no more than its own part. One that has forgotten
//! everything does not know whose parts those are: until all are back `R·0.3 s` may be sent beside its grants.
//! [`BudgetSnapshot`] says how a member stands, and what is wrong.
//!
//! # What it costs
//!
//! A request reads one word that requests only read, and moves one word, as with any limited [`SendRate`]; the outcome writes
//! nothing unless it is a throttle. A busy member asks twice in a lease, an idle one three times a second: at 1,000
//! requests/s for each member that is ten steps for 1,000 requests. A scope is one hash under one key, so that scopes
//! spread over a cluster by themselves; the client here is that of a single engine. `README.md` has figures.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `tls` | no | `rediss://`, by rustls with the system's certificates |
//!
//! [`SendRate`]: paceline::SendRate
//! [`RetryQuota`]: paceline::RetryQuota

mod alone;
mod budget;
mod demand;
mod engine;
mod fault;
mod fleet;
mod member;
mod pool;
mod pour;
mod quota;
mod settings;
mod snapshot;
mod strategy;
mod task;
mod wait;
mod wire;

pub use budget::Budget;
pub use fault::{EngineFault, FleetError};
pub use fleet::{Fleet, Scope};
pub use quota::{RetryBudget, RetryBudgetSnapshot, RetryScope};
pub use settings::Away;
pub use snapshot::{BudgetSnapshot, Standing};
pub use strategy::FleetStrategy;
pub use wait::DeadlinePassed;
