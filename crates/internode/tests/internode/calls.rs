//! Calls and their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_cluster::Volume;
use ilion_internode::{CallError, Kind, Lane, Served, ServedCall, ServiceError};
use parking_lot::{Condvar, Mutex};

use crate::nodes::{Addresses, Function, KIND, LONG, Start, ask, echo, in_time, pair};

/// A door that requests wait at.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    pub fn pass(&self) {
        let mut is_open = self.0.0.lock();
        while !*is_open {
            let waited = self.0.1.wait_for(&mut is_open, LONG);
            assert!(!waited.timed_out(), "the gate was not opened");
        }
    }
}

#[test]
fn a_request_comes_back_whatever_its_size() {
    let (asking, _asked, _) = pair(echo());
    for size in [0, 1, 100, 65_535, 65_536, 65_537, 200_000, 5 << 20] {
        let request: Vec<u8> = (0..size).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        assert_eq!(ask(&asking, 2, request.clone()).unwrap(), request, "{size}");
    }
}

#[test]
fn a_node_calls_itself_and_others_both_ways() {
    let addresses = Addresses::default();
    let one = Start::node(1).serving(echo()).start(&addresses);
    let two = Start::node(2).serving(echo()).start(&addresses);
    assert_eq!(ask(&one, 2, "there").unwrap(), "there");
    assert_eq!(ask(&two, 1, "back").unwrap(), "back");
    assert_eq!(ask(&one, 1, "here").unwrap(), "here");
}

#[test]
fn the_service_knows_who_asks() {
    let (asking, _asked, _) = pair(Function(|_, call: &ServedCall| {
        Ok(Served::Whole(call.asker().node.to_string().into_bytes().into()))
    }));
    assert_eq!(ask(&asking, 2, "").unwrap(), "1");
}

#[test]
fn hundreds_of_calls_share_a_connection_and_none_gets_the_answer_of_another() {
    let (asking, _asked, _) = pair(echo());
    let client = asking.client();
    let threads: Vec<_> = (0..8_u32)
        .map(|thread| {
            let client = client.clone();
            std::thread::spawn(move || {
                for round in 0..10_u32 {
                    let request =
                        |at: u32| Bytes::from(format!("{thread} {round} {at}").repeat(1 + at as usize * 40));
                    let calls: Vec<_> = (0..64)
                        .map(|at| client.call(2, KIND, Lane::Point, request(at), Some(LONG)))
                        .collect();
                    for (at, call) in (0..64).zip(calls).rev() {
                        assert_eq!(call.wait(in_time()).unwrap(), request(at));
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The first request waits in its service until the second one is answered.
#[test]
fn a_later_request_may_be_answered_first() {
    let gate = Gate::default();
    let held = gate.clone();
    let (asking, _asked, _) = pair(Function(move |request: Bytes, _: &ServedCall| {
        if request == "slow" {
            held.pass();
        }
        Ok(Served::Whole(request))
    }));
    let slow = asking
        .client()
        .call(2, KIND, Lane::Point, "slow".into(), Some(LONG));
    assert_eq!(ask(&asking, 2, "fast").unwrap(), "fast");
    gate.open();
    assert_eq!(slow.wait(in_time()).unwrap(), "slow");
}

#[test]
fn refusals_failures_and_panics_come_with_their_words() {
    let (asking, asked_node, _) = pair(Function(|request: Bytes, _: &ServedCall| match &request[..] {
        b"refuse" => Err(ServiceError::Refused("it is no replica".to_owned())),
        b"late" => Err(ServiceError::TimedOut),
        b"fail" => Err(ServiceError::Failed("a disk failed".to_owned())),
        _ => panic!("a service of a test"),
    }));
    let asked = |request: &'static str| ask(&asking, 2, request).unwrap_err();
    assert_eq!(asked("refuse"), CallError::Refused("it is no replica".to_owned()));
    assert_eq!(asked("late"), CallError::TimedOut);
    assert_eq!(asked("fail"), CallError::Failed("a disk failed".to_owned()));
    assert!(matches!(asked("panic"), CallError::Failed(reason) if reason.contains("panicked")));
    assert_eq!(asked("refuse"), CallError::Refused("it is no replica".to_owned()));
    let unknown = asking
        .client()
        .call(2, Kind(9), Lane::Point, Bytes::new(), Some(LONG));
    assert_eq!(
        unknown.wait(in_time()),
        Err(CallError::Refused(
            "it has no service for requests of kind 9".to_owned()
        ))
    );
    let volume = |count, bytes| Volume { count, bytes };
    let traffic = asking.client().traffic()[&2];
    assert_eq!(traffic.sent, volume(6, 25));
    assert_eq!(traffic.unanswered, volume(5, 21));
    assert_eq!(traffic.unanswered_in_time, volume(1, 4));
    assert_eq!((traffic.attempts, traffic.connected, traffic.open), (1, 1, 1));
    let traffic = asked_node.client().traffic()[&1];
    assert_eq!(
        (traffic.received, traffic.answered),
        (volume(6, 25), volume(0, 0))
    );
    assert_eq!((traffic.failed, traffic.expired), (volume(5, 21), volume(1, 4)));
    let (asking, asked) = (asking.client().counts(), asked_node.client().counts());
    assert_eq!((asking.asked, asking.unanswered), (6, 6));
    assert_eq!((asked.served, asked.failed), (6, 6));
}

#[test]
fn a_wait_ends_at_its_deadline_and_the_service_is_told() {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let (asking, _asked, _) = pair(Function(move |_, call: &ServedCall| {
        while call.is_wanted() {
            std::thread::yield_now();
        }
        tell.lock().send(()).unwrap();
        Ok(Served::Whole(Bytes::new()))
    }));
    let call = asking
        .client()
        .call(2, KIND, Lane::Point, Bytes::new(), Some(LONG));
    let begun = Instant::now();
    // Nodes of this test were started a moment ago: their clocks are far from a second.
    assert_eq!(call.wait(300_000_000), Err(CallError::TimedOut));
    assert!(begun.elapsed() < LONG / 2);
    told.recv_timeout(LONG).unwrap();
}

#[test]
fn a_call_that_is_dropped_is_cancelled_also_while_it_waits_for_a_thread() {
    let (tell, told) = channel();
    let begun = Arc::new(AtomicUsize::new(0));
    let (tell, count) = (Mutex::new(tell), begun.clone());
    let addresses = Addresses::default();
    let service = Function(move |request: Bytes, call: &ServedCall| {
        count.fetch_add(1, SeqCst);
        tell.lock().send(request.clone()).unwrap();
        while request == "wait" && call.is_wanted() {
            std::thread::yield_now();
        }
        Ok(Served::Whole(request))
    });
    let _asked = Start::node(2)
        .serving(service)
        .options(|options| options.threads = [1; 4])
        .start(&addresses);
    let asking = Start::node(1).start(&addresses);
    let send = |request: &'static str| {
        asking
            .client()
            .call(2, KIND, Lane::Point, request.into(), Some(LONG))
    };
    let running = send("wait");
    assert_eq!(told.recv_timeout(LONG).unwrap(), "wait");
    let (queued, last) = (send("never"), send("last"));
    drop(queued);
    drop(running);
    assert_eq!(last.wait(in_time()).unwrap(), "last");
    assert_eq!(told.recv_timeout(LONG).unwrap(), "last");
    assert_eq!(
        begun.load(SeqCst),
        2,
        "the queued one was cancelled before it ran"
    );
}

#[test]
fn a_request_whose_time_is_over_before_a_thread_is_free_is_not_executed() {
    let gate = Gate::default();
    let held = gate.clone();
    let addresses = Addresses::default();
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let service = Function(move |request: Bytes, _: &ServedCall| {
        count.fetch_add(1, SeqCst);
        held.pass();
        Ok(Served::Whole(request))
    });
    let _asked = Start::node(2)
        .serving(service)
        .options(|options| options.threads = [1; 4])
        .start(&addresses);
    let asking = Start::node(1).start(&addresses);
    let client = asking.client();
    let first = client.call(2, KIND, Lane::Point, Bytes::new(), Some(LONG));
    let late = client.call(2, KIND, Lane::Point, Bytes::new(), Some(Duration::ZERO));
    gate.open();
    assert!(first.wait(in_time()).is_ok());
    assert_eq!(late.wait(in_time()), Err(CallError::TimedOut));
    assert_eq!(begun.load(SeqCst), 1);
}

#[test]
fn long_work_in_one_lane_keeps_no_other_lane_waiting() {
    let gate = Gate::default();
    let held = gate.clone();
    let addresses = Addresses::default();
    let service = Function(move |request: Bytes, _: &ServedCall| {
        if request == "long" {
            held.pass();
        }
        Ok(Served::Whole(request))
    });
    let _asked = Start::node(2)
        .serving(service)
        .options(|options| options.threads = [1, 1, 2, 1])
        .start(&addresses);
    let asking = Start::node(1).start(&addresses);
    let send = |lane| asking.client().call(2, KIND, lane, "long".into(), Some(LONG));
    let long: Vec<_> = [Lane::Heavy, Lane::Heavy, Lane::Heavy, Lane::Waiting, Lane::Copy]
        .map(send)
        .into();
    for _ in 0..100 {
        assert_eq!(ask(&asking, 2, "short").unwrap(), "short");
    }
    gate.open();
    for call in long {
        assert_eq!(call.wait(in_time()).unwrap(), "long");
    }
}

#[test]
fn a_lane_with_too_many_waiting_requests_refuses_more() {
    let gate = Gate::default();
    let held = gate.clone();
    let addresses = Addresses::default();
    let service = Function(move |request: Bytes, _: &ServedCall| {
        held.pass();
        Ok(Served::Whole(request))
    });
    let _asked = Start::node(2)
        .serving(service)
        .options(|options| (options.threads, options.waiting_max) = ([1; 4], 4))
        .start(&addresses);
    let asking = Start::node(1).start(&addresses);
    let calls: Vec<_> = (0..20)
        .map(|_| asking.client().call(2, KIND, Lane::Heavy, "x".into(), Some(LONG)))
        .collect();
    // Another lane answers only after all of them have arrived: the connection keeps their order.
    let pong = asking
        .client()
        .call(2, Kind(9), Lane::Point, Bytes::new(), Some(LONG));
    assert!(matches!(pong.wait(in_time()), Err(CallError::Refused(_))));
    gate.open();
    let answers: Vec<_> = calls.into_iter().map(|call| call.wait(in_time())).collect();
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!((4..=5).contains(&answered), "{answered}");
    let refused = |answer: &&Result<Bytes, CallError>| matches!(answer, Err(CallError::Refused(reason)) if reason == "too many requests wait there (heavy)");
    assert_eq!(answers.iter().filter(refused).count(), 20 - answered);
}

#[test]
fn more_calls_than_a_connection_has_room_for_are_refused_at_once() {
    let gate = Gate::default();
    let held = gate.clone();
    let (asking, _asked, _) = pair(Function(move |request: Bytes, _: &ServedCall| {
        held.pass();
        Ok(Served::Whole(request))
    }));
    let send = |request: Bytes| asking.client().call(2, KIND, Lane::Waiting, request, Some(LONG));
    let large = send(vec![0; 63 << 20].into());
    let refused = send(vec![0; 2 << 20].into()).wait(in_time());
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
    gate.open();
    assert_eq!(large.wait(in_time()).unwrap().len(), 63 << 20);
    assert!(send(vec![0; 2 << 20].into()).wait(in_time()).is_ok());
}

#[test]
fn an_answer_that_is_too_large_fails_alone() {
    let addresses = Addresses::default();
    let service = Function(|request: Bytes, _: &ServedCall| {
        let size = if request == "large" { 3 << 20 } else { 100 };
        Ok(Served::Whole(vec![7; size].into()))
    });
    let _asked = Start::node(2).serving(service).start(&addresses);
    let asking = Start::node(1)
        .options(|options| options.part_bytes_max = 2 << 20)
        .start(&addresses);
    for _ in 0..3 {
        let refused = ask(&asking, 2, "large").unwrap_err();
        assert_eq!(
            refused,
            CallError::Failed("its answer has more than 2097152 bytes".to_owned())
        );
        assert_eq!(ask(&asking, 2, "small").unwrap().len(), 100);
    }
}

#[test]
fn calls_end_when_a_node_stops_and_later_ones_too() {
    let gate = Gate::default();
    let held = gate.clone();
    let (asking, asked, _) = pair(Function(move |request: Bytes, _: &ServedCall| {
        held.pass();
        Ok(Served::Whole(request))
    }));
    let call = asking
        .client()
        .call(2, KIND, Lane::Point, Bytes::new(), Some(LONG));
    let client = asking.client().clone();
    asking.stop();
    assert!(matches!(call.wait(in_time()), Err(CallError::Unreachable(_))));
    let later = client.call(2, KIND, Lane::Point, Bytes::new(), Some(LONG));
    let said = later.wait(in_time());
    assert_eq!(
        said,
        Err(CallError::Unreachable("this node is shutting down".to_owned()))
    );
    gate.open();
    asked.stop();
}
