//! Retry settings: the grammar of profile files rule by rule, what each text means, which of
//! several sources counts, and where the files are.
#![cfg(feature = "std")]

mod fake;
mod profile_errors;
mod profile_files;
mod sources;
mod strategies;
mod values;
mod whereabouts;
