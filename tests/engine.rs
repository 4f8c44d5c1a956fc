//! What components become on each engine.

mod engine {
    mod argo;
    mod flux;
    mod overlay;
    mod ready_expr;
    mod support;
}
