//! TLS for sockets: keys and certificates from files, and sockets that may be encrypted.
//!
//! Two layers use it: the ports of clients and operators (`server`), and the connections between nodes (`internode`). [`TlsOptions`]
//! names the files; [`Encryption::load`] reads them, and reads them again when they change; [`Socket`] is a TCP connection with or
//! without TLS, on either side.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | [`TlsOptions`]: what the operator asks for; the configurations of rustls for it |
//! | `encryption` | [`Encryption`]: the current configurations, read again when files change |
//! | `keystore` | files with keys and certificates: PEM, PKCS#12 |
//! | `validity` | warns of a certificate that soon expires |
//! | `any_name` | trust in a chain of certificates, whatever name they have |
//! | `peer_name` | whether the certificate of a peer names its address |
//! | `socket` | [`Socket`] |

mod any_name;
mod encryption;
mod keystore;
mod options;
mod peer_name;
mod socket;
mod validity;

pub use encryption::Encryption;
pub use options::{Connecting, PeerCertificates, TlsError, TlsOptions};
pub use peer_name::names_address;
pub use socket::{Socket, TlsFacts};
