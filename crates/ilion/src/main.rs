//! The `ilion` binary: one match on the subcommand.
fn main() {}
