//! Windlass
