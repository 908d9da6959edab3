//! The server: sockets, sessions, settings, HTTP.

pub mod settings;
