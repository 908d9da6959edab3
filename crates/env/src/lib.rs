//! The one door to files, clock and randomness.
