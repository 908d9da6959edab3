//! Round trips between two nodes of one process over the loopback address, as figures: calls per second, and the CPU time of the process
//! for a call, with one call and with 64 calls on their way, without and with TLS (with the certificates of the tests).
//!
//! `cargo run --release -p ilion-internode --example round_trips -- [SECONDS] [ANSWER_BYTES]`

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_cluster::Node;
use ilion_env::{Env, MemEnv, RealEnv};
use ilion_internode::{
    Identity, Internode, Kind, Lane, Options, Peers, Served, ServedCall, Service, ServiceError, Services,
    Setup, StoragePort,
};
use ilion_tls::{Connecting, PeerCertificates, TlsOptions};
use uuid::Uuid;

type Problem = Box<dyn std::error::Error>;

const KIND: Kind = Kind(200);

/// Answers each request with these bytes.
struct Fixed(Bytes);

impl Service for Fixed {
    fn answer(&self, _request: Bytes, _call: &ServedCall) -> Result<Served, ServiceError> {
        Ok(Served::Whole(self.0.clone()))
    }
}

/// One other node.
struct Other(SocketAddr);

impl Peers for Other {
    fn address(&self, _node: Node) -> Option<SocketAddr> {
        Some(self.0)
    }
}

fn start(
    node: Node,
    other: SocketAddr,
    port: StoragePort,
    answer: &Bytes,
    tls: bool,
) -> Result<Internode, Problem> {
    let env: Arc<dyn Env> = match tls {
        false => RealEnv::new(),
        true => {
            let env = MemEnv::new(1);
            env.create_dir_all(Path::new("/tls"))?;
            env.write_atomically(
                Path::new("/tls/node"),
                include_bytes!("../../tls/testdata/node.pem"),
            )?;
            env.write_atomically(
                Path::new("/tls/trust"),
                include_bytes!("../../tls/testdata/ca.pem"),
            )?;
            Arc::new(env)
        }
    };
    let setup = Setup {
        env,
        identity: Identity {
            cluster: Uuid::from_u128(7),
            node,
            session: Uuid::from_u128(u128::from(node)),
            host: Uuid::from_u128(u128::from(node)),
        },
        peers: Arc::new(Other(other)),
        services: Services::new().with(KIND, Arc::new(Fixed(answer.clone()))),
        options: Options::default(),
        tls: tls.then(|| TlsOptions {
            block: "server_encryption_options",
            is_optional: false,
            keystore: "/tls/node".into(),
            keystore_password: None,
            truststore: "/tls/trust".into(),
            truststore_password: None,
            peer_certificates: PeerCertificates::Required,
            connecting: Connecting::Trusted,
            protocols: Vec::new(),
        }),
    };
    Ok(Internode::start(setup, port)?)
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    // Fields 14 and 15 behind the name of the program, in hundredths of a second.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn main() -> Result<(), Problem> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let answer = Bytes::from(vec![7; bytes]);
    println!("answers of {bytes} bytes, {seconds} s each");
    for tls in [false, true] {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (one, two) = (StoragePort::take(any)?, StoragePort::take(any)?);
        let (of_one, of_two) = (one.address(), two.address());
        let asking = start(1, of_two, one, &answer, tls)?;
        let asked = start(2, of_one, two, &answer, tls)?;
        for in_flight in [1, 64] {
            let call = || {
                asking
                    .client()
                    .call(2, KIND, Lane::Point, Bytes::from_static(&[1; 100]), None)
            };
            call().wait(u64::MAX)?;
            let (begun, cpu_before, mut calls) = (Instant::now(), cpu(), 0_u64);
            let mut open = std::collections::VecDeque::new();
            while begun.elapsed() < Duration::from_secs(seconds) {
                while open.len() < in_flight {
                    open.push_back(call());
                }
                if let Some(call) = open.pop_front() {
                    call.wait(u64::MAX)?;
                    calls += 1;
                }
            }
            let (took, cpu_time) = (begun.elapsed(), cpu() - cpu_before);
            println!(
                "tls {tls}, {in_flight:2} in flight: {:.0} calls/s, {:.1} us of CPU time a call",
                calls as f64 / took.as_secs_f64(),
                cpu_time.as_secs_f64() * 1e6 / calls as f64
            );
        }
        asking.stop();
        asked.stop();
    }
    Ok(())
}
