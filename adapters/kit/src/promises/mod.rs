//! The promises of every adapter, as tests in real time on sockets of loopback. An adapter brings
//! its client, and [`keep_promises`](crate::keep_promises) makes the tests.

mod hostile;
mod named;

use alloc::sync::Arc;
use core::{pin::Pin, time::Duration};

use paceline::{Adaptive, RetryStrategy, Scopes, law::PacedSettings};
use tokio::{
    sync::RwLock,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{SECOND, Said, Server, server::limited as policed};

pub use hostile::{BODY_DEADLINE, a_hostile_body_is_bounded};

/// The deadline of the clients of [`a_deadline_ends_everything`].
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Makes the tests of the promises of every adapter, except [`a_hostile_body_is_bounded`].
///
/// `client` takes a [`Setup`], and returns a function that [sends](Sends). The service answers
/// `well` to requests within its limit. Each row of `refusals` has the name of a test, and its
/// answer to requests over the limit. The refusal `slow` asks for a wait of 30 s. With `client`
/// alone the answers are of plain HTTP. With `busy: true` the tests that measure a time run alone,
/// for a client that is slow in a build for tests.
#[macro_export]
macro_rules! keep_promises {
    (client: $client:path $(,)?) => {
        $crate::keep_promises! {
            client: $client,
            well: $crate::OK,
            refusals: {
                a_service_that_says_429_is_adapted_to: $crate::SLOW_DOWN,
                a_service_that_says_503_is_adapted_to: $crate::OVERLOADED,
                a_service_that_says_503_and_when_is_adapted_to: $crate::HINTED,
            },
            slow: $crate::OVERLOADED.header(("retry-after", "30")),
        }
    };
    (client: $client:path, $($rest:tt)+) => {
        $crate::keep_promises! { busy: false, client: $client, $($rest)+ }
    };
    (
        busy: $busy:literal,
        client: $client:path,
        well: $well:expr,
        refusals: { $($name:ident: $refusal:expr),+ $(,)? },
        slow: $slow:expr $(,)?
    ) => {
        #[tokio::test]
        async fn a_limited_scope_is_limited_and_slows_no_other() {
            let _together = $crate::promises::together($busy).await;
            $crate::promises::a_limited_scope_slows_no_other($well, $client).await;
        }

        $(
            #[tokio::test]
            async fn $name() {
                let _together = $crate::promises::together($busy).await;
                $crate::promises::a_service_is_adapted_to($well, $refusal, $client).await;
            }
        )+

        #[tokio::test]
        async fn a_deadline_ends_everything() {
            let _alone = $crate::promises::alone($busy).await;
            $crate::promises::a_deadline_ends_everything($well, $slow, $client).await;
        }

        #[tokio::test]
        async fn a_dropped_request_leaves_nothing() {
            $crate::promises::a_dropped_request_leaves_nothing($well, $slow, $client).await;
        }

        #[tokio::test]
        async fn a_waiter_goes_early_when_the_rate_rises() {
            let _alone = $crate::promises::alone($busy).await;
            $crate::promises::a_waiter_goes_early($well, $client).await;
        }
    };
}

/// Tests of a busy client that measure a time hold the lock alone. The other tests share it.
static ALONE: RwLock<()> = RwLock::const_new(());

#[doc(hidden)]
pub async fn together(busy: bool) -> Option<impl Sized> {
    if busy { Some(ALONE.read().await) } else { None }
}

#[doc(hidden)]
pub async fn alone(busy: bool) -> Option<impl Sized> {
    if busy {
        Some(ALONE.write().await)
    } else {
        None
    }
}

/// The strategy of a test.
pub type Strategy = Arc<Scopes<Adaptive>>;
/// One request, and whether it succeeded.
pub type Read = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Sends a request at each call.
pub trait Sends: Fn() -> Read + Clone + Send + 'static {}

impl<F: Fn() -> Read + Clone + Send + 'static> Sends for F {}

/// The settings of a test's client.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The address of the service, with a slash at its end.
    pub url: String,
    /// The strategy of all requests.
    pub strategy: Strategy,
    /// The scope of all requests.
    pub scope: &'static str,
    /// How long a request may take, with all its attempts and waits.
    pub deadline: Option<Duration>,
}

impl Setup {
    fn new(server: &Server, strategy: &Strategy) -> Self {
        Self {
            url: server.url.clone(),
            strategy: strategy.clone(),
            scope: "hot",
            deadline: None,
        }
    }

    /// Returns the URL without the slash at its end.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// Returns the strategy with all operations on the scope.
    #[must_use]
    pub fn scoped(&self) -> Arc<dyn RetryStrategy> {
        named::on(&self.strategy, self.scope)
    }

    /// Returns `built`, with the deadline set by `bound` if there is one.
    pub fn bounded<T>(&self, built: T, bound: impl FnOnce(T, Duration) -> T) -> T {
        match self.deadline {
            Some(span) => bound(built, span),
            None => built,
        }
    }
}

/// Returns the settings of `tokens` in each `span`, with a burst of a tenth of a second.
fn fixed(tokens: u32, span: Duration) -> PacedSettings {
    let settings = PacedSettings::fixed(tokens, span).expect("in range");
    let settings = settings.to_builder().burst(SECOND / 10);
    settings.build().expect("in range")
}

/// Returns a strategy whose scopes are limited to `tokens` in each `span`, except the scope "free".
fn limited(tokens: u32, span: Duration) -> Strategy {
    let template = Adaptive::builder().paced(fixed(tokens, span));
    let exceptions = |key: &str| {
        (key == "free").then(|| Adaptive::builder().law(paceline::ControlLaw::Aws).build())
    };
    let scopes = template.scopes().exceptions(exceptions).build();
    Arc::new(scopes.expect("in range"))
}

/// Returns a strategy with the paced law and no other setting.
fn paced() -> Strategy {
    let scopes = Adaptive::builder().paced(PacedSettings::new()).scopes();
    Arc::new(scopes.build().expect("in range"))
}

/// Calls `send` `count` times at once. Returns how many calls succeeded, and how long all took.
async fn burst(count: u32, send: impl Fn() -> Read) -> (usize, Duration) {
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..count {
        tasks.spawn(send());
    }
    let mut succeeded = 0_usize;
    while let Some(well) = tasks.join_next().await {
        succeeded += usize::from(well.expect("no test panicked"));
    }
    (succeeded, begun.elapsed())
}

/// A scope that is limited to 10/s sends 30 in 2 to 5 s (with two turns for each they take 5.9 s).
/// It does not slow another scope, which ends first. In the same line that scope would end last.
pub async fn a_limited_scope_slows_no_other<F: Sends>(well: Said, client: impl Fn(&Setup) -> F) {
    let (server, strategy) = (Server::with(&[well]).await, limited(10, SECOND));
    let of = |scope| {
        let setup = Setup::new(&server, &strategy);
        burst(30, client(&Setup { scope, ..setup }))
    };
    let ((hot, took), (free, at_once)) = tokio::join!(of("hot"), of("free"));
    assert_eq!((hot, free), (30, 30));
    assert!((2 * SECOND..5 * SECOND).contains(&took), "{took:?}");
    assert!(at_once < took, "{at_once:?}, and the limited one {took:?}");
}

/// 32 tasks send 512 requests to a service of 50/s, which answers the others with `refusal`. At
/// most 1 % fail.
pub async fn a_service_is_adapted_to<F: Sends>(
    well: Said,
    refusal: Said,
    client: impl Fn(&Setup) -> F,
) {
    let server = Server::saying(policed(50.0, well, refusal)).await;
    let send = client(&Setup::new(&server, &paced()));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let send = send.clone();
        tasks.spawn(async move {
            let mut failed = 0_u32;
            for _ in 0..16 {
                failed += u32::from(!send().await);
            }
            failed
        });
    }
    let mut failed = 0_u32;
    while let Some(count) = tasks.join_next().await {
        failed += count.expect("no test panicked");
    }
    assert!(failed <= 5, "{failed} of 512 failed");
}

/// Asserts that requests begun at `begun` ended less than a second after their deadline. The second
/// is for a busy machine. Without a deadline the shortest case here takes 3.6 s.
fn assert_in_time(begun: Instant) {
    let took = begun.elapsed();
    assert!(took < DEADLINE + SECOND, "{took:?}");
}

/// A deadline of 2 s, which `client` sets, ends everything: an attempt under way, the wait in line,
/// and the wait that `refusal` asks for.
pub async fn a_deadline_ends_everything<F: Sends>(
    well: Said,
    refusal: Said,
    client: impl Fn(&Setup) -> F,
) {
    let client = |server: &Server, strategy: Strategy| {
        let setup = Setup::new(server, &strategy);
        client(&Setup {
            deadline: Some(DEADLINE),
            ..setup
        })
    };
    let server = Server::with(&[well.after(30 * SECOND)]).await;
    let send = client(&server, paced());
    let begun = Instant::now();
    assert!(!send().await, "it was never answered");
    assert!(begun.elapsed() >= DEADLINE);
    assert_in_time(begun);
    // In a line of 3 a second, some 6 of 12 requests are sent.
    let server = Server::with(&[well]).await;
    let send = client(&server, limited(3, SECOND));
    let begun = Instant::now();
    let (answered, _) = burst(12, send).await;
    assert!((5..=7).contains(&answered), "{answered}");
    assert_in_time(begun);
    let server = Server::with(&[refusal]).await;
    let send = client(&server, paced());
    let begun = Instant::now();
    assert!(!send().await, "it was refused");
    assert_in_time(begun);
}

fn count_waiting(strategy: &Scopes<Adaptive>) -> u64 {
    strategy.find("hot").map_or(0, |state| {
        state.send_rate().snapshot(state.clock().now()).waiting
    })
}

/// Drops `request` as soon as `is_time` returns `true`.
async fn drop_once(request: Read, is_time: impl Fn() -> bool) {
    let wait = async {
        while !is_time() {
            sleep(SECOND / 100).await;
        }
    };
    tokio::select! {
        _ = request => panic!("it ended"),
        () = wait => {}
    }
}

/// A request that is dropped under way, in line or backing off leaves no place in line, no permit
/// and no scope in use. `refusal` asks for a wait of 30 s, for which the rate pauses.
pub async fn a_dropped_request_leaves_nothing<F: Sends>(
    well: Said,
    refusal: Said,
    client: impl Fn(&Setup) -> F,
) {
    // The rate is one token in 100 s. So the wait for the next token shows each place or permit
    // that is left.
    let check = |scopes: &Scopes<Adaptive>, all: Duration, quota: u32| {
        assert_eq!(scopes.count_in_use(), 0);
        let state = scopes.find("hot").expect("it was in use");
        let now = state.clock().now();
        assert_eq!(state.send_rate().snapshot(now).waiting, 0);
        let wait = state.send_rate().try_acquire(now).unwrap_err();
        assert!(wait <= all && wait + 20 * SECOND > all, "{wait:?}");
        assert_eq!(state.quota().available(), quota);
    };
    // An attempt under way, and then in line.
    let server = Server::with(&[well.after(30 * SECOND)]).await;
    let strategy = limited(1, 100 * SECOND);
    let send = client(&Setup::new(&server, &strategy));
    drop_once(send(), || server.requests() == 1).await;
    check(&strategy, 100 * SECOND, 500);
    for _ in 0..2 {
        drop_once(send(), || count_waiting(&strategy) == 1).await;
        check(&strategy, 100 * SECOND, 500);
    }
    // A retry waits as the service asked. The rate pauses for all, and the retry's payment comes
    // back.
    let server = Server::with(&[refusal]).await;
    let strategy = limited(1, 100 * SECOND);
    let send = client(&Setup::new(&server, &strategy));
    let backs_off = || {
        let state = strategy.find("hot");
        state.is_some_and(|state| state.quota().available() == 495)
    };
    drop_once(send(), backs_off).await;
    check(&strategy, 130 * SECOND, 500);
}

/// A request in line whose turn is in 20 s is sent when the rate rises.
pub async fn a_waiter_goes_early<F: Sends>(well: Said, client: impl Fn(&Setup) -> F) {
    let (server, strategy) = (Server::with(&[well]).await, limited(1, 20 * SECOND));
    let send = client(&Setup::new(&server, &strategy));
    assert!(send().await, "a token was there");
    let begun = Instant::now();
    let waiting = tokio::spawn(send());
    while count_waiting(&strategy) == 0 {
        assert!(!waiting.is_finished(), "it was sent before its turn");
        sleep(SECOND / 100).await;
    }
    let state = strategy.find("hot").expect("it is in use");
    let faster = state.set_paced(fixed(1_000, SECOND));
    faster.expect("it can be changed");
    assert!(waiting.await.expect("no panic"));
    let took = begun.elapsed();
    assert!(took < 10 * SECOND, "{took:?}");
}
