//! Collects the code about client crates, which paceline's own documentation cannot compile.

use std::{env, fs, path::Path};

const PAGES: [&str; 3] = [
    "../../src/guide/client_crates.md",
    "../tower/README.md",
    "../reqwest/README.md",
];

fn main() {
    let mut all = String::new();
    for page in PAGES {
        println!("cargo::rerun-if-changed={page}");
        let text = fs::read_to_string(page).expect("a page");
        let blocks = text.split("```rust,ignore\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("\n```").next()) {
            all.push_str(&format!("{page}:\n\n```no_run\n{block}\n```\n\n"));
        }
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("pages.md"), all).expect("a file");
}
