//! From settings to strategies.

use paceline::{
    Standard,
    aws_config::{ConfigFault, RetryConfig, RetryMode},
};

use crate::fake::Fake;

/// Returns the most sends of the strategy that `config` builds.
fn built(config: &RetryConfig) -> Option<u32> {
    let strategy = config.build_strategy();
    let token = strategy.acquire_initial_token(None).unwrap();
    token.max_attempts()
}

fn mode(mode: RetryMode) -> RetryConfig {
    Fake::new()
        .load_with(&RetryConfig::loader().mode(mode))
        .unwrap()
}

#[test]
fn nothing_set_builds_standard_mode_with_its_defaults() {
    let config = RetryConfig::default();
    assert_eq!(built(&config), Some(3));
    assert!(format!("{:?}", config.build_strategy()).starts_with("Standard"));
}

#[test]
fn mode_decides_what_is_built() {
    for (of, name, sends) in [
        (RetryMode::Standard, "Standard", 3),
        (RetryMode::Adaptive, "Adaptive", 3),
        (RetryMode::Legacy, "Legacy", 5),
    ] {
        assert!(format!("{:?}", mode(of).build_strategy()).starts_with(name));
        assert_eq!(built(&mode(of)), Some(sends));
    }
}

#[test]
fn number_of_sends_is_that_of_the_strategy() {
    for mode in ["standard", "adaptive", "legacy"] {
        let fake = Fake::new()
            .with("AWS_RETRY_MODE", mode)
            .with("AWS_MAX_ATTEMPTS", "8");
        assert_eq!(built(&fake.load().unwrap()), Some(8));
    }
}

#[test]
fn builder_keeps_what_it_was_told() {
    let config = Fake::new().with("AWS_MAX_ATTEMPTS", "8").load().unwrap();
    let sends = |strategy: Standard| strategy.settings().max_attempts;
    let builder = Standard::builder;
    assert_eq!(sends(builder().config(&config).build().unwrap()), 8);
    assert_eq!(
        sends(builder().max_attempts(2).config(&config).build().unwrap()),
        2
    );
    assert_eq!(
        sends(builder().config(&config).max_attempts(2).build().unwrap()),
        2
    );
    assert_eq!(
        sends(builder().config(&config).dynamodb().build().unwrap()),
        8
    );
    let nothing = RetryConfig::default();
    assert_eq!(
        sends(builder().config(&nothing).dynamodb().build().unwrap()),
        4
    );
}

/// Of the process's own environment nothing is known here but that no profile has this name.
#[test]
fn profile_that_is_nowhere_is_an_error() {
    let known = ["AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"].map(std::env::var_os);
    let answer = RetryConfig::from_profile("no profile has spaces");
    if known.iter().any(Option::is_none) {
        let error = answer.unwrap_err();
        assert!(
            matches!(error.fault(), ConfigFault::NoProfile { profile, .. } if profile == "no profile has spaces")
        );
    }
}

#[test]
fn generation_counts_unless_the_builder_has_one() {
    use paceline::config::RetryGeneration::{V2_0, V2_1};
    let config = RetryConfig::loader()
        .generation(V2_0)
        .load_from(&Fake::new());
    let config = config.unwrap();
    let generation = |strategy: Standard| strategy.settings().generation;
    let builder = Standard::builder;
    assert_eq!(generation(builder().config(&config).build().unwrap()), V2_0);
    let before = builder().generation(V2_1).config(&config);
    assert_eq!(generation(before.build().unwrap()), V2_1);
    let after = builder().config(&config).generation(V2_1);
    assert_eq!(generation(after.build().unwrap()), V2_1);
    let nothing = builder().config(&RetryConfig::default());
    assert_eq!(generation(nothing.build().unwrap()), V2_1, "the default");
}
