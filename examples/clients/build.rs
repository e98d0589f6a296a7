//! Makes a function of each block of code about a client crate, which paceline's own documentation
//! cannot compile.

use std::{env, fs, path::Path};

const PAGE: &str = "../../src/guide/client_crates.md";

fn main() {
    println!("cargo::rerun-if-changed={PAGE}");
    let text = fs::read_to_string(PAGE).expect("a page");
    let mut all = String::new();
    let blocks = text.split("```rust,ignore\n").skip(1);
    for block in blocks.filter_map(|rest| rest.split("\n```").next()) {
        // Lines that rustdoc hides.
        let lines = block.lines().map(|line| line.trim_start_matches("# "));
        let lines: Vec<_> = lines.collect();
        all.push_str(&format!(
            "const _: fn() = || {{\n{}\n}};\n",
            lines.join("\n")
        ));
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("pages.rs"), all).expect("a file");
}
