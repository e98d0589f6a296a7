//! The published law and the paced law: traces beside models in floats, corners and extremes.

mod models;
mod paced;
mod paced_extremes;
mod paced_traces;
mod paced_tuned;
mod published;
mod published_traces;
