//! The decisions played on a simulated cluster.
