//! A wire between two nodes that a test can cut, hold, and damage.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use parking_lot::{Condvar, Mutex};

/// What happens to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// They pass.
    Whole,
    /// They are taken and lost, in both directions: the other side is gone without a word.
    Silent,
    /// They are not even taken: buffers fill up.
    Held,
    /// One bit of the next bytes that the second side sends is changed; then they pass.
    Flipped,
}

struct State {
    wire: Mutex<Wire>,
    changed: Condvar,
    streams: Mutex<Vec<TcpStream>>,
    connections: AtomicUsize,
    /// Bytes that came from the second side.
    passed: AtomicU64,
}

/// See the module.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// A wire to this address.
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            wire: Mutex::new(Wire::Whole),
            changed: Condvar::new(),
            streams: Mutex::default(),
            connections: AtomicUsize::new(0),
            passed: AtomicU64::new(0),
        });
        let of_thread = state.clone();
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for first in listener.incoming().map_while(Result::ok) {
                let Ok(second) = TcpStream::connect(target) else {
                    continue;
                };
                of_thread.connections.fetch_add(1, SeqCst);
                for (from, to, is_second) in [(&first, &second, false), (&second, &first, true)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let state = of_thread.clone();
                    std::thread::spawn(move || pass(from, to, &state, is_second));
                }
                of_thread.streams.lock().extend([first, second]);
            }
        });
        Self { address, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, wire: Wire) {
        *self.state.wire.lock() = wire;
        self.state.changed.notify_all();
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in self.state.streams.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(SeqCst)
    }

    /// Bytes that have passed from the second side so far.
    pub fn passed(&self) -> u64 {
        self.state.passed.load(SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State, is_second: bool) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        {
            let mut wire = state.wire.lock();
            while *wire == Wire::Held {
                state.changed.wait(&mut wire);
            }
        }
        let count = match from.read(&mut buffer) {
            Ok(count) if count > 0 => count,
            _ => break,
        };
        let wire = {
            let mut wire = state.wire.lock();
            let now = *wire;
            if now == Wire::Flipped && is_second {
                *wire = Wire::Whole;
            }
            now
        };
        if wire == Wire::Silent {
            continue;
        }
        if wire == Wire::Flipped && is_second {
            buffer[count / 2] ^= 0x10;
        }
        if is_second {
            state.passed.fetch_add(count as u64, SeqCst);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
