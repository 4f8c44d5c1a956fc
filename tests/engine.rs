//! What components become on each engine.

#![allow(clippy::unwrap_used, clippy::panic)]

mod engine {
    mod argo;
    mod flux;
    mod overlay;
    mod ready_expr;
    mod support;
}
