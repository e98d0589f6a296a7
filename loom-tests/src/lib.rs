//! Models of the atomic core.
