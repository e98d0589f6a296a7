//! What differs between the versions of `OpenDAL`: here 0.57.

use opendal_core::raw::{Access, Layer};
pub(crate) use opendal_core::raw::{
    HttpBody, HttpClient as HttpTransporter, HttpFetch as HttpTransport,
};

use crate::PacingLayer;

/// The client belongs to the service, so operators that share a service share the layer.
impl<A: Access> Layer<A> for PacingLayer {
    type LayeredAccess = A;

    fn layer(&self, inner: A) -> A {
        let around = |client| HttpTransporter::with(self.around(client));
        inner.info().update_http_client(around);
        inner
    }
}
