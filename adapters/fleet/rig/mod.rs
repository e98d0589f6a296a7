//! The parts that tests and the example run against: a real engine, a service that throttles,
//! members that are real processes, and a proxy that can be cut.

// Each program that includes this uses a part of it.
#![allow(dead_code, reason = "shared by several programs")]

pub(crate) mod agents;
pub(crate) mod engine;
pub(crate) mod member;
pub(crate) mod parts;
pub(crate) mod proxy;
pub(crate) mod record;
pub(crate) mod script;
pub(crate) mod service;
