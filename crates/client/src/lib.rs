//! A blocking client of the native protocol v5 and v4, for one thread: the tools of Ilion connect with it to any CQL server.
//!
//! [`Connection::open`] connects, encrypts if [`LoginArgs`] say so, and logs in. [`Connection::ask`] sends one request and waits for its
//! answer; a tool with many requests under way appends them to `output`, and calls `send`, `receive` and `next_frame` itself.
//!
//! | module | what |
//! | --- | --- |
//! | `connection` | [`Connection`], [`Target`], [`LoginArgs`] |
//! | `encryption` | [`Trust`]: TLS over a socket |

mod connection;
mod encryption;

pub use connection::{Connection, LoginArgs, Target, request_frame};
pub use encryption::{Socket, Trust};
