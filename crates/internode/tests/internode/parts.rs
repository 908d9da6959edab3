//! Answers in parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;

use bytes::Bytes;
use ilion_internode::{CallError, Internode, Kind, Lane, Parts, Served, ServedCall, ServiceError};
use parking_lot::Mutex;

use crate::nodes::{Function, KIND, LONG, ask, echo, in_time, pair};

fn fetch(from: &Internode, kind: Kind, request: impl Into<Bytes>) -> Parts {
    from.client()
        .fetch(2, kind, Lane::Copy, request.into(), Some(LONG))
}

/// A part of this number: its size and content depend on it.
fn part(number: usize) -> Bytes {
    vec![number as u8; number * 7919 % 200_000].into()
}

#[test]
fn parts_arrive_complete_and_in_order() {
    let (asking, _asked, _) = pair(Function(|_, _: &ServedCall| {
        Ok(Served::Parts(Box::new((0..100).map(|number| Ok(part(number))))))
    }));
    let mut parts = fetch(&asking, KIND, "");
    for number in 0..100 {
        assert_eq!(
            parts.next_part(in_time()).unwrap(),
            Some(part(number)),
            "{number}"
        );
    }
    assert_eq!(parts.next_part(in_time()), Ok(None));
    assert_eq!(parts.next_part(in_time()), Ok(None));
}

#[test]
fn an_answer_of_no_parts_and_an_answer_in_one_piece_can_be_fetched() {
    let (asking, _asked, _) = pair(Function(|request: Bytes, _: &ServedCall| match &request[..] {
        b"none" => Ok(Served::Parts(Box::new(std::iter::empty()))),
        _ => Ok(Served::Whole(request)),
    }));
    assert_eq!(fetch(&asking, KIND, "none").next_part(in_time()), Ok(None));
    let mut whole = fetch(&asking, KIND, "whole");
    assert_eq!(whole.next_part(in_time()).unwrap().unwrap(), "whole");
    assert_eq!(whole.next_part(in_time()), Ok(None));
    // And parts can be had in one piece.
    let none = asking
        .client()
        .call(2, KIND, Lane::Copy, "none".into(), Some(LONG));
    assert_eq!(none.wait(in_time()).unwrap(), "");
}

#[test]
fn a_part_that_is_larger_than_the_window_arrives() {
    let (asking, _asked, _) = pair(Function(|_, _: &ServedCall| {
        let large = || Ok(Bytes::from(vec![7; 5 << 20]));
        Ok(Served::Parts(Box::new([large(), large()].into_iter())))
    }));
    let mut parts = fetch(&asking, KIND, "");
    for _ in 0..2 {
        assert_eq!(parts.next_part(in_time()).unwrap().unwrap().len(), 5 << 20);
    }
    assert_eq!(parts.next_part(in_time()), Ok(None));
}

/// 64 MiB for a reader that takes one part: only what fits into the window is made.
#[test]
fn a_reader_that_stops_stops_the_service() {
    const PART: usize = 64 << 10;
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let (asking, _asked, _) = pair(Function(move |_, _: &ServedCall| {
        let count = count.clone();
        Ok(Served::Parts(Box::new((0..1024).map(move |_| {
            count.fetch_add(1, SeqCst);
            Ok(vec![1; PART].into())
        }))))
    }));
    let mut parts = fetch(&asking, KIND, "");
    assert!(parts.next_part(in_time()).unwrap().is_some());
    // Other calls go on meanwhile, on this connection, too.
    for _ in 0..200 {
        let other = asking
            .client()
            .call(2, Kind(9), Lane::Copy, Bytes::new(), Some(LONG));
        assert!(matches!(other.wait(in_time()), Err(CallError::Refused(_))));
    }
    let ahead = made.load(SeqCst);
    assert!(
        ahead <= (1 << 20) / PART + 4,
        "{ahead} parts of 64 KiB for a window of 1 MiB"
    );
    let mut rest = 0;
    while let Some(part) = parts.next_part(in_time()).unwrap() {
        assert_eq!(part.len(), PART);
        rest += 1;
    }
    assert_eq!(rest, 1023);
}

#[test]
fn a_failure_in_the_middle_comes_after_the_parts_before_it() {
    let (asking, _asked, _) = pair(Function(|_, _: &ServedCall| {
        let broken = Err(ServiceError::Failed("a disk failed".to_owned()));
        let parts = [Ok(part(30)), Ok(part(31)), broken, Ok(part(32))];
        Ok(Served::Parts(Box::new(parts.into_iter())))
    }));
    let mut parts = fetch(&asking, KIND, "");
    assert_eq!(parts.next_part(in_time()).unwrap(), Some(part(30)));
    assert_eq!(parts.next_part(in_time()).unwrap(), Some(part(31)));
    let failed = Err(CallError::Failed("a disk failed".to_owned()));
    assert_eq!(parts.next_part(in_time()), failed);
}

#[test]
fn a_reader_that_goes_away_ends_the_service_and_leaves_room_for_others() {
    struct Told(Mutex<std::sync::mpsc::Sender<()>>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.lock().send(());
        }
    }
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let (asking, _asked, _) = pair(Function(move |_, _: &ServedCall| {
        let ends = Told(Mutex::new(tell.lock().clone()));
        Ok(Served::Parts(Box::new(std::iter::repeat_with(move || {
            let _held = &ends;
            Ok(vec![1; 100_000].into())
        }))))
    }));
    // More than there are threads for copies.
    for _ in 0..20 {
        let mut parts = fetch(&asking, KIND, "");
        assert!(parts.next_part(in_time()).unwrap().is_some());
        drop(parts);
        told.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn a_slow_reader_of_parts_waits_as_long_as_it_wants() {
    let (tell, told) = channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let (asking, _asked, _) = pair(Function(move |_, _: &ServedCall| {
        let told = told.clone();
        Ok(Served::Parts(Box::new((0..2).map(move |number| {
            told.lock().recv_timeout(LONG).unwrap();
            Ok(part(number + 1))
        }))))
    }));
    let mut parts = fetch(&asking, KIND, "");
    // A deadline that has passed: nodes were started before it.
    assert_eq!(parts.next_part(1), Err(CallError::TimedOut));
    tell.send(()).unwrap();
    assert_eq!(parts.next_part(in_time()).unwrap(), Some(part(1)));
    assert_eq!(parts.next_part(1), Err(CallError::TimedOut));
    tell.send(()).unwrap();
    assert_eq!(parts.next_part(in_time()).unwrap(), Some(part(2)));
    assert_eq!(parts.next_part(in_time()), Ok(None));
}

/// Copies have a connection of their own.
#[test]
fn copies_do_not_hold_up_short_calls() {
    let (asking, _asked, _) = pair(echo());
    let large = Bytes::from(vec![3; 8 << 20]);
    let copies: Vec<_> = (0..4)
        .map(|_| {
            asking
                .client()
                .call(2, KIND, Lane::Copy, large.clone(), Some(LONG))
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(ask(&asking, 2, "short").unwrap(), "short");
    }
    for copy in copies {
        assert_eq!(copy.wait(in_time()).unwrap(), large);
    }
}
