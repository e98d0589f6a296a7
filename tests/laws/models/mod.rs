//! Both laws in floating point, and a limiter that is held to the published law. The fuzz targets
//! and the benches include files of this folder by path.

pub(crate) mod aws_model;
pub(crate) mod cycle_model;
pub(crate) mod law_check;
pub(crate) mod paced_model;
