//! Sockets, sessions, settings, HTTP.
