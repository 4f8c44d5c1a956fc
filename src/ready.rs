//! Readiness: what an engine's objects say about a release, and what any other
//! object says about itself.
//!
//! * [`release`]: the states of a release; `engine::observe` tells which one it is in;
//! * [`evidence`]: `readyWhen`, with evidence that is not left over from before;
//! * [`cel`]: expressions under limits;
//! * [`owned`]: whether an object is still as Windlass wrote it.

pub mod cel;
pub mod evidence;
pub mod owned;
pub mod release;
