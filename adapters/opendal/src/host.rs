//! What differs between the versions of `OpenDAL`. Each adapter has its own version of this file,
//! and shares the other files.

use opendal_core::{
    OperationContext,
    raw::{Layer, Servicer},
};

pub(crate) use opendal_core::{HttpBody, HttpTransport, HttpTransporter};

use crate::PacingLayer;

impl Layer for PacingLayer {
    fn apply_context(&self, _service: Servicer, inner: OperationContext) -> OperationContext {
        let transport = self.around(inner.http_transport().clone());
        inner.with_http_transport(HttpTransporter::new(transport))
    }
}
