#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_fuzz::systems::systems(data));
