//! What components and sets of Packages become on each engine and in each mode.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

mod render {
    mod argo;
    mod cel;
    mod compile;
    mod flux;
    mod managed;
    mod native;
    mod overlay;
    mod ready_expr;
    mod support;
    mod values;
}
