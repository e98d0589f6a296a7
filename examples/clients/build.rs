//! Makes a function of each block of code about a client crate, which paceline's own documentation
//! cannot compile.

use std::{env, fs, path::Path};

const PAGES: [&str; 2] = [
    "../../src/guide/client_crates.md",
    "../../adapters/tower/README.md",
];

fn main() {
    let mut all = String::new();
    for page in PAGES {
        println!("cargo::rerun-if-changed={page}");
        let text = fs::read_to_string(page).expect("a page");
        let blocks = text.split("```rust,ignore\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("\n```").next()) {
            // Lines that rustdoc hides.
            let lines = block.lines().map(|line| line.trim_start_matches("# "));
            let lines: Vec<_> = lines.collect();
            all.push_str(&format!(
                "// {page}\nconst _: fn() = || {{\n{}\n}};\n",
                lines.join("\n")
            ));
        }
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("pages.rs"), all).expect("a file");
}
