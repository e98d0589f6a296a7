//! Settings in a text have names: a list is none.

use core::fmt::Debug;

use paceline::{Adaptive, Standard, config::StrategyBuilder, law::PacedSettings};
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned + Debug>(text: &str) -> Result<(), String> {
    let read = serde_json::from_str::<T>(text);
    read.map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_list_is_no_settings() {
    for text in ["[]", "[3]", "[null]", "3", "null", "\"\"", "true"] {
        let all = [
            read::<StrategyBuilder<Standard>>(text),
            read::<StrategyBuilder<Adaptive>>(text),
            read::<PacedSettings>(text),
        ];
        for read in all {
            let error = read.expect_err(text);
            assert!(error.contains("settings by their names"), "{text}: {error}");
        }
    }
    assert_eq!(
        read::<StrategyBuilder<Adaptive>>(r#"{ "paced": {} }"#),
        Ok(())
    );
    assert!(read::<StrategyBuilder<Adaptive>>(r#"{ "paced": [] }"#).is_err());
    assert_eq!(read::<PacedSettings>("{}"), Ok(()));
}
