//! The fuzzer that `PPT_FUZZER` names, under libFuzzer; `fuzz/run` starts it.
#![no_main]

use std::sync::OnceLock;

use ppt_fuzz::{Bounded, Fuzzer};

#[global_allocator]
static MEMORY: Bounded = Bounded;

fn chosen() -> &'static Fuzzer {
    static CHOSEN: OnceLock<&Fuzzer> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("PPT_FUZZER").unwrap_or_default();
        Fuzzer::by_name(&name).unwrap_or_else(|| panic!("PPT_FUZZER={name} names no fuzzer"))
    })
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| chosen().survive(input));
