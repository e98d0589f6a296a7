//! One send allowance, or one retry budget, for many processes.
//!
//! One process can adapt to a limit alone. Many processes that share one limit, such as an
//! account's, take too much or too little if each adapts alone. Here an engine hands out leases:
//! tokens that a member may spend. The engine is a file for the processes of one machine, or a
//! Redis (6.2 or later) or Valkey server for many machines. A task of each member asks for leases
//! ahead of need, and puts them into `paceline`'s local buckets. No request waits for the engine.
//!
//! ```no_run
//! use std::time::Duration;
//! use paceline_fleet::{Fleet, FleetError};
//!
//! # #[cfg(feature = "local")]
//! # async fn five_lines() -> Result<(), FleetError> {
//! let fleet = Fleet::local("/var/lib/orders/limits")?; // or Fleet::connect("redis://..").await?
//! let scope = fleet.scope("orders-table", 2_000, Duration::from_secs(1))?;
//! let budget = scope.join()?;
//! let permit = budget.acquire().await; // send, and then:
//! budget.record(permit, paceline::Outcome::NotThrottled);
//! # Ok(())
//! # }
//! ```
//!
//! [`FleetStrategy`] puts a budget before the sends of a strategy, [`Scope::over`] before a
//! [`SendRate`], and [`Fleet::retry_budget`] feeds a [`RetryQuota`] that strategies pay from.
//!
//! # What is promised
//!
//! `R` is the allowance. `C` is what the engine keeps for members that ask late: 100 ms at `R`, at
//! least two tokens. `H` is what all `N` members hold together: a lease, which is 200 ms at `R`,
//! and a token for each member. `C` is half a lease. Where the round trip to the engine takes more
//! than a fifth of the lease, the lease is half of itself and two and a half round trips: 350 ms at
//! a round trip of 100 ms, 1.6 s at 600 ms. Both bounds grow with the lease. Members may have
//! leases of different lengths: the longest lease of a member that the engine knows counts for both
//! bounds, until that member has left or is forgotten. With more than 500 members the engine asks
//! for longer leases, 400 ms with 1,000 and 4 s with 10,000. `H` grows with that, and `C` does not.
//!
//! * **From an empty start, no more than `R·t` is granted in `t` seconds**, even if members crash
//!   or repeat asks. The engine mints by its clock, at the rate at the beginning of the time that
//!   has passed, and takes each grant from that in one script. A scope that the engine does not
//!   remember starts empty.
//! * **All members together never hold more than `H`.** Each ask says what the member still holds.
//!   The engine adds up what all members said and were granted since, and grants nothing above `H`.
//!   What a member holds only shrinks until it asks again. What a silent member was granted counts
//!   until it has expired.
//! * **In any window of `w` seconds no more than `R·w + C + H` is sent.** What is sent in the
//!   window was either granted in it, from at most `R·w` that is minted in it and `C` that was kept
//!   when it began; or it was granted before, and held when the window began: at most `H`. With the
//!   defaults `C + H` is 300 ms at the allowance and a token for each member. Requests reach a
//!   service later than they are sent, so the service may see more in a window, by the requests in
//!   flight.
//! * **A lease is paid once.** An ask that is repeated has the number of the last one, and gets the
//!   same answer.
//! * **Tokens expire** a second after the member's last answered ask was made, or three of the
//!   leases that the engine asks for, by that member's monotonic clock. A process that was stopped
//!   for longer wakes up without tokens. Clocks need not agree: only spans go over the wire.
//! * **After a fail-over** to an engine that knows less, or a restart that forgot, at most `C` is
//!   granted a second time, since a scope never stores more. Until all members have asked, the
//!   engine does not know what they hold, so at most `H` is held twice. A window around it has at
//!   most `R·w + 2·(C + H)`.
//! * **While two engines take writes**, as in a partition that leaves the old primary running, each
//!   of them is a fleet: `k` engines grant `k·(R·w + C + H)` at most. `min-replicas-to-write` ends
//!   that within `min-replicas-max-lag`.
//! * **Without the engine**, [`Away::Closed`] sends nothing. With [`Away::Alone`] each member sends
//!   the part that the engine has lent it, or its [safe rate](Scope::safe_rate). All members that
//!   are cut off send `R` and the sum of the safe rates at most, in whatever order they lost the
//!   engine. If some are cut off and others are not, all send `2·R` and that sum at most, since the
//!   engine grants `R`. [Without the engine](#without-the-engine) derives that.
//! * **A hostile value** under a key is an error, or worth `C + H` at most each time that it is
//!   written. It is never a panic. Its effect on shares ends within a minute, and that
//!   of one wrong field on the rate of seconds within 80 s. A lease that was written counts as the
//!   longest, up to 10 s, until its member is forgotten. A wrong time until which a plan is spent
//!   stops the scope for a month at most, or until its key is deleted.
//! * **The engine takes 5,000 steps a second** for a scope, and one more for each member that
//!   joins, leaves, or asks later than it may. Each step books the next of 5,000 slots in a second
//!   for the member's next one, and no member asks before its slot, whatever waits or was
//!   throttled. Members that an engine does not answer ask no more often than the last answer
//!   allowed.
//!
//! Tests hold each of these: with arbitrary members and the engine's script in virtual time
//! (`tests/fleet/bounds.rs`), and with real processes and faults (`tests/fleet/faults.rs`).
//!
//! # Without the engine
//!
//! With each answer the engine lends a member a part: what it may send alone, by [`Away::Alone`].
//! The part is its share, but no more than `R` less what is lent to the others. A member that falls
//! silent may be cut off and send its part, so that stays lent. When the engine forgets the member,
//! the part is set aside, and what is set aside halves every 400 s. A member halves its part every
//! 300 s without the engine. So in any order of losses and returns:
//!
//! * What the members may send alone is no more than what is lent and set aside, which is `R` at
//!   most. Safe rates, and the floor of members that never had an answer, come on top.
//! * Members that the engine answers send no more than it grants: `R·w + C + H` in any window.
//! * A member that comes back takes its part out of what is set aside. One that leaves gives it
//!   back. One that was killed is not told from one that is cut off: after a `kill -9` of all
//!   members but one, that one has the whole allowance from the engine, and its old part alone.
//!   That part grows to a half of the rest in 400 s.
//! * An engine that was emptied has forgotten what is lent. A member that it forgot keeps its old
//!   part for a minute, whatever it answers. Each loss of its memory may lend `R` once more, to new
//!   members or after that minute.
//!
//! The example `simulate` plays it, with members that lose the engine one after the other, and come
//! back one by one.
//!
//! # Shares
//!
//! Four times a second (with over 1,000 members, once in a quarter of a millisecond for each) the
//! engine shares the rate out by demand. Each demand is met up to one level: max-min fair. An idle
//! member keeps a tenth of an equal part in reserve, so that it need not wait for its next request.
//! A member of [weight](Scope::weight) 2 counts as two. A member that is silent for its lease, or
//! half a second, has no demand until it asks again. A newcomer has its part of the first lease at
//! once: from 64 members on, an eighth of `C` is kept for newcomers, and for the first token of a
//! member that found nothing when it joined. Those that found nothing stand in a line. The answer
//! says when the next token comes that no member before has, and the other members leave a token
//! while there is such a line. A member that joins, or was idle, asks again within 100 ms, or an
//! eighth of its time between two asks, and then twice as late each time, as far as the engine has
//! slots. A member's part grows at its share whether it asks early or late, up to its lease. A part
//! that the scope does not have is not owed later, or a long lease would save up what a short one
//! cannot. What no member takes is there for the members that ask.
//!
//! # Several allowances
//!
//! A [`BudgetSet`] takes from several budgets at once, requests and tokens a minute, say, and
//! settles later what a request really cost. [`FleetStrategy::of_set`] puts it before the sends of
//! a strategy. [`Budget::set_allowance`] changes an allowance while
//! members run: to what an operator says, or to what the service declares.
//!
//! # Learning
//!
//! A throttle lowers the rate of all members, unless it is one member's own. It is if the others
//! sent enough to have had three throttles by now, and had less than a quarter of that member's
//! share of them. The part of that member is halved, and doubles in each second without a throttle.
//! The others take what it leaves. Two seconds of requests are looked at. If they are too few to
//! tell, all slow down.
//!
//! A limit may be a window of minutes or hours: what all members did from one opening of the
//! service to the next, the dark part included, is the limit (rules 16 to 21). An outage counts as
//! such a window if it lasts longer than the service was open before. After 5 s at 1,000/s and an
//! outage of 20 s, a fleet needs 41 s for its old rate; after 30 s at that rate, 6 s.
//! [`Fleet::unknown`] begins a scope whose limit is not known. An engine that forgot such a scope
//! goes on at the rate that the first member to ask knows. Where an equal part is less than a token
//! in the time that a lease is good, a member holds only what its requests wait for.
//!
//! A hint (`Retry-After`) pauses the scope only where nothing gets through; otherwise it is for the
//! request that was throttled.
//!
//! The law is the paced one of the core, and it runs **at the engine**, in the same script: that is
//! where all throttles are seen, in one order, and where no turn has to be handed on when a member
//! is killed or stopped. A test (`tests/fleet/law.rs`) plays both side by side. After a cut, up to
//! the peak, their rates agree to 10⁻⁵. Told the same responses of a service for half a minute,
//! they make the same cuts, and their rates agree to 2 %: the core's moves in steps of 17 ms, and a
//! window may end one response later. Each alone before the same outage, they knock as often. The
//! laws differ where a fleet does:
//!
//! * A round trip is a request's and a lease's together, since what was granted before a cut is
//!   sent after it. For two of them after a cut no throttle counts, not even as a shut (rule 6):
//!   what was delivered is known a lease late. A cut in the two seconds before a shut was seen is
//!   taken back for the same reason. What is expected is what was granted.
//! * A peak that nothing confirmed for 30 s is no longer an estimate, and the rate doubles every
//!   2.5 s from there. The core's law ends there (rule 10); a fleet always limits. It also ends
//!   what a wrong value in the engine does. While cycles are counted time proves nothing.
//! * While the service is shut nothing is granted but the knock, to the first member that asks when
//!   its time has come and has a request. If no outcome of the knock comes, the next knock goes
//!   a wait later. Where successes are not recorded, a knock without a throttle by then was done.
//! * Time was not used if its tokens found no room in the bucket.
//! * An unknown limit is looked for from a quarter of the rate up (rule 8): a fleet has an
//!   allowance to begin with, and need not begin at next to nothing.
//! * Rules 7 and 10 have no place: what is delivered was granted, and a fleet always limits.
//!
//! The estimate of what is delivered is what was spent less what was throttled. A success need not
//! be recorded.
//!
//! # When the engine is away
//!
//! The engine is away while it is down, slow, partitioned, failing over, out of memory, emptied
//! again and again, or refuses the password. A member then spends its lease. Two leases after the
//! last answer, or at the end of the lease's validity, it does as [`Away`] says. If one member is
//! cut off and the others are not, the others get its share after two seconds. A member that is too
//! busy to hear the engine within its patience counts as cut off.
//!
//! An engine that is emptied twice within two seconds has little to grant. With [`Away::Alone`] a
//! member then goes on alone, until it was remembered for two seconds; otherwise it takes what
//! there is.
//!
//! A member asks four times a second until the engine is back. 0.3 s after that all members have a
//! lease, and with the first answer each drops what it granted itself. There is no burst: the
//! engine notices the gap, drops what was minted in it, forgets no member for it, and for half a
//! second gives each no more than its part. An engine that has forgotten everything does not know
//! those parts: until all members are back `R·0.3 s` may be sent beside its grants.
//! [`BudgetSnapshot`] shows how a member stands, and the fault.
//!
//! # A file as the engine
//!
//! `Fleet::local` takes the path of a file. A step is the script that servers run, in the same Lua,
//! inside a transaction of SQLite. So the rules and the bounds above hold for a file as well, with
//! these differences:
//!
//! * **The file is never away** because of silence. What was saved up, at most `C`, is there for
//!   the next process.
//! * **A process may be killed at any point.** The file is as it was before or after the last step.
//!   A process that is killed loses what it holds: a lease, and a token. A runtime that ends gives
//!   the tokens back.
//! * **The rate that was learned, a pause and a retry budget outlive the processes**, for a day
//!   without a step, and a [spent plan](Budget::shut_for) until its reset. A retry budget is full
//!   in a new file, as a quota in a new process is. The rate forgets throttles after 30 s, as on a
//!   server.
//! * **Time** is that since the start of the machine, which is the same for all its processes and
//!   cannot be set. After another start it goes on by the system's clock, or where it was if that
//!   is behind. Only Linux names its starts: elsewhere time is the system's clock, and setting that
//!   ahead ends a pause early. Setting it back by more than a second is
//!   [`EngineFault::ClockJumped`].
//! * **A process that is stopped** (`SIGSTOP`) in the middle of a step, which takes a fraction of a
//!   millisecond, keeps the file locked. The others spend their leases, have the fault
//!   [`EngineFault::TimedOut`], and do as [`Away`] says. On Linux they go on within 2 s, in
//!   a copy of what the last step left. The stopped process keeps the old file
//!   until its next step, as `PATH.stopped`: what that step granted, a lease, comes on top.
//!   Elsewhere an open file cannot be left behind, and they wait until that process goes on or
//!   ends.
//! * **A network file system** has no memory that machines share, which SQLite's log needs: use a
//!   server between machines.
//! * A power cut may undo the last steps. It does not damage the file.
//! * **A file that another program emptied or overwrote** is put aside as `PATH.damaged` by the
//!   processes that have used it, and made anew: a restart that forgot.
//!
//! # What it costs
//!
//! A request reads one word that requests only read, and moves one word, as with any limited
//! [`SendRate`]. The outcome reads a word, and writes nothing unless it is a throttle or the first
//! success of a knock. A busy member asks twice in a
//! lease, an idle one three times a second: at 1,000 requests/s for each member that is ten steps
//! for 1,000 requests. `README.md` has figures.
//!
//! A scope is one hash under one key, so a proxy can spread scopes over engines. The client here is
//! that of a single engine: [`Fleet::connect`] refuses a node of a cluster with
//! [`EngineFault::Cluster`], and a member of a fleet that was only opened shows that fault at once.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `local` | yes | `Fleet::local`, by SQLite and Lua; both are compiled from C |
//! | `tls` | no | `rediss://`, by rustls and *ring*: the system's authorities or [others](FleetBuilder::root_certificates), and a [client certificate](FleetBuilder::client_certificate) |
//!
//! [`SendRate`]: paceline::SendRate
//! [`RetryQuota`]: paceline::RetryQuota

mod alone;
mod budget;
mod demand;
mod engine;
mod fault;
mod fleet;
mod line;
#[cfg(feature = "local")]
mod local;
mod member;
mod pool;
mod pour;
mod quota;
mod set;
mod settings;
mod snapshot;
mod strategy;
mod task;
mod wait;
mod wire;

pub use budget::Budget;
pub use fault::{EngineFault, FleetError};
pub use fleet::{Fleet, FleetBuilder, Scope};
pub use quota::{FleetRetryBudget, FleetRetrySnapshot, RetryScope};
pub use set::{BudgetSet, SetCharge};
pub use settings::Away;
pub use snapshot::{BudgetSnapshot, MemberId, Standing};
pub use strategy::FleetStrategy;
pub use wait::DeadlinePassed;
