//! Byte cursors, vints, checksums, Murmur3 and chunk compression.
