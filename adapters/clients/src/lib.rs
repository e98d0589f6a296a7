#![doc = include_str!(concat!(env!("OUT_DIR"), "/pages.md"))]
