//! Limits that a service declares: one limit, several, services of each kind, and answers that never come.

mod limits;
mod services;
mod sets;
mod unheard;
