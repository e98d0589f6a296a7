//! The promises of the pool, by the numbers of the example.

use super::{Mode, play};

#[test]
fn a_pool_uses_all_keys_and_more_than_a_key_at_random() {
    for seed in 1..=3 {
        let [random, pool] = [Mode::Random, Mode::Pool].map(|mode| play(mode, seed));
        let figures = (pool.used(), pool.refused(), random.used());
        assert!(pool.used() >= 0.95 && pool.refused() <= 2.0, "{figures:?}");
        assert!(pool.used() > random.used() + 0.02, "{figures:?}");
        let least = pool.done.iter().min().copied();
        assert!(
            least >= Some(pool.sum() / 9),
            "all are used: {:?}",
            pool.done
        );
    }
}
