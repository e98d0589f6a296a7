//! The published law in floating point, and a limiter that is held to it. The fuzz targets include
//! these files by path.

pub(crate) mod aws_model;
pub(crate) mod law_check;
