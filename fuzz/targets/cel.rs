//! Any text as an expression: parsing, its lints, what is suggested for it and
//! its evaluation end in an answer, whatever is asked.

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
            for flaw in expression.never_boolean().into_iter().chain(expression.bad_patterns()) {
                assert!(text.is_char_boundary(flaw.offset), "{flaw:?}");
            }
            let mut object = json!({
                "metadata": {"name": "x", "generation": 3},
                "status": {"phase": "Running", "replicas": 2, "conditions": [{"type": "Ready", "status": "True"}]},
            });
            let _ = expression.evaluate(&Variables::ready(&object, "1.2.0", "1.1.0")).to_string();
            let _ = expression.parts().len();
            expression.suggest(&mut object, "1.2.0", "1.1.0");
            let _ = expression.evaluate(&Variables::ready(&object, "1.2.0", "1.1.0")).is_true();
        }
        Err(error) => assert!(text.is_char_boundary(error.offset), "{error:?}"),
    }
});
