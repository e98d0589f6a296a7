#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_fuzz::quota::quota_vs_model(data));
