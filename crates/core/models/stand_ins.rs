//! How the models reach what is private.

/// Makes public types that stand for those of the crate, and forward to them.
macro_rules! stand_ins {
    ($(
        $(#[$doc:meta])*
        $name:ident($inner:ty) {
            let $new:ident($($given:ident: $kind:ty)?) = $made:expr;
            $($method:ident($($argument:ident: $of:ty),*) $(-> $result:ty)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(missing_debug_implementations, reason = "for models")]
        pub struct $name($inner);

        #[allow(clippy::must_use_candidate, reason = "for models")]
        impl $name {
            /// Creates it.
            #[allow(clippy::new_without_default, reason = "as the one it stands for")]
            pub fn $new($($given: $kind)?) -> Self {
                Self($made)
            }

            $(
                /// As the method of the type that it stands for.
                pub fn $method(&self $(, $argument: $of)*) $(-> $result)? {
                    self.0.$method($($argument),*)
                }
            )*
        }
    )*};
}
pub(crate) use stand_ins;
