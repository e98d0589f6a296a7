//! The grammar of profile files, rule by rule.
#![cfg(feature = "std")]

mod profile_errors;
mod profile_files;
