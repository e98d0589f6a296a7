# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# A function that makes each attempt of an action wait for its turn. The loop stays as it is.
version=0.3.2
features='"rand"'
change() {
    after src/lib.rs 'pub mod strategy;' '
extern crate std;
mod paced;
pub use paced::Paced;

/// Each attempt of `action` waits for its turn. `is_throttle` says which errors are throttles.
pub fn paced<A: Action>(
    mut action: A,
    paced: std::sync::Arc<Paced>,
    is_throttle: impl Fn(&A::Error) -> bool + Clone,
) -> impl Action<Item = A::Item, Error = A::Error> {
    move || {
        let (attempt, paced, is_throttle) = (action.run(), paced.clone(), is_throttle.clone());
        let status = move |result: &Result<A::Item, A::Error>| match result {
            Err(error) if is_throttle(error) => Some(429),
            _ => Some(200),
        };
        async move { paced.send(attempt, status).await }
    }
}'
}
