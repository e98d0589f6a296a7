# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# A function that makes each attempt of an action wait for its turn. The loop stays as it is.
version=0.3.2
features='"rand"'
change() {
    after src/lib.rs 'pub mod strategy;' '
extern crate std;
mod paced;
pub use paced::Paced;

/// What an attempt by turn returns.
pub type ByTurn<A> = Pin<std::boxed::Box<dyn Future<Output = Result<<A as Action>::Item, <A as Action>::Error>> + Send>>;

/// Each attempt of `action` waits for its turn. `is_throttle` says which errors are throttles.
pub fn paced<A: Action + '\''static>(
    mut action: A,
    paced: std::sync::Arc<Paced>,
    is_throttle: fn(&A::Error) -> bool,
) -> impl Action<Item = A::Item, Error = A::Error, Future = ByTurn<A>>
where
    A::Future: Send,
{
    move || -> ByTurn<A> {
        let (attempt, paced) = (action.run(), paced.clone());
        let throttled = move |result: &Result<_, _>| result.as_ref().err().is_some_and(is_throttle);
        let status = move |result: &_| Some(if throttled(result) { 429 } else { 200 });
        std::boxed::Box::pin(async move { paced.send(attempt, status).await })
    }
}'
}
