#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_fuzz::law::law_vs_f64(data));
