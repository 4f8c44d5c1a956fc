//! Any text as an expression: parsing, its lints and evaluation end in an
//! answer, whatever is asked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use windlass::ready::cel::{Expression, Variables};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Expression::compile(text) {
        Ok(expression) => {
            let _ = expression.roots();
            for access in expression.unguarded(&["object", "status"]) {
                assert!(text.is_char_boundary(access.offset), "{access:?}");
            }
            let object = json!({
                "metadata": {"name": "x", "generation": 3},
                "status": {"phase": "Running", "replicas": 2, "conditions": [{"type": "Ready", "status": "True"}]},
            });
            let _ = expression.evaluate(&Variables::ready(&object, "1.2.0", "1.1.0")).to_string();
        }
        Err(error) => assert!(text.is_char_boundary(error.offset), "{error:?}"),
    }
});
