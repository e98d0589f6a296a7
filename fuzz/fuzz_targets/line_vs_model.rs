#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_fuzz::line::line_vs_model(data));
