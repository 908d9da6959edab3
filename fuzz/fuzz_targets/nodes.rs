#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ilion_fuzz::nodes::run(data));
