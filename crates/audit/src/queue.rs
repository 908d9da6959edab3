//! The queue of lines to write: bounded in bytes, with one thread that takes from it.
//!
//! Waking the thread costs more than a line, so after the first line it waits a moment for more.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How long the thread waits for more lines.
const MOMENT: Duration = Duration::from_millis(5);
/// From this number of bytes on, the thread takes the lines without waiting for more.
const MUCH_BYTES: usize = 64 << 10;

/// A buffer of this capacity or less is used again.
const KEPT_CAPACITY: usize = 1 << 20;

/// The outcome for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Queued,
    /// There was no room, or the queue is closed.
    Refused,
}

/// The queue.
pub(crate) struct Queue {
    bytes_max: usize,
    /// Held to copy a line or to swap a buffer, never during I/O.
    state: Mutex<State>,
    has_lines: Condvar,
    has_room: Condvar,
}

#[derive(Default)]
struct State {
    /// Whole lines, one after another.
    waiting: Vec<u8>,
    /// Bytes that were taken but are not written yet. They count towards the limit, since they are still in memory.
    taken_bytes: usize,
    /// True while the thread waits for the first line.
    is_idle: bool,
    is_closed: bool,
}

impl State {
    fn bytes(&self) -> usize {
        self.waiting.len() + self.taken_bytes
    }

    /// Whether a line has room. An empty queue has room for any line, even one larger than the limit.
    fn has_room(&self, more_bytes: usize, bytes_max: usize) -> bool {
        let bytes = self.bytes();
        bytes == 0 || bytes.saturating_add(more_bytes) <= bytes_max
    }

    fn push(&mut self, line: &[u8]) {
        self.waiting.extend_from_slice(line);
    }
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            state: Mutex::default(),
            has_lines: Condvar::new(),
            has_room: Condvar::new(),
        }
    }

    /// Queues a line if there is room.
    pub(crate) fn put_now(&self, line: &[u8]) -> Put {
        let mut state = self.state.lock();
        if state.is_closed || !state.has_room(line.len(), self.bytes_max) {
            self.has_lines.notify_one();
            return Put::Refused;
        }
        self.push(&mut state, line);
        Put::Queued
    }

    /// Queues a line; waits for room.
    pub(crate) fn put(&self, line: &[u8]) -> Put {
        let mut state = self.state.lock();
        while !state.is_closed && !state.has_room(line.len(), self.bytes_max) {
            self.has_lines.notify_one();
            self.has_room.wait(&mut state);
        }
        if state.is_closed {
            return Put::Refused;
        }
        self.push(&mut state, line);
        Put::Queued
    }

    fn push(&self, state: &mut State, line: &[u8]) {
        state.push(line);
        if state.is_idle || self.is_much(state) {
            self.has_lines.notify_one();
        }
    }

    fn is_much(&self, state: &State) -> bool {
        state.waiting.len() >= MUCH_BYTES.min(self.bytes_max)
    }

    /// Takes all lines; waits for the first line, and a moment for more. `lines` gives its buffer back to the queue.
    /// Returns false if the queue is closed and empty.
    pub(crate) fn take(&self, lines: &mut Vec<u8>) -> bool {
        lines.clear();
        lines.shrink_to(KEPT_CAPACITY);
        let mut state = self.state.lock();
        state.taken_bytes = 0;
        self.has_room.notify_all();
        while state.waiting.is_empty() {
            if state.is_closed {
                return false;
            }
            state.is_idle = true;
            self.has_lines.wait(&mut state);
            state.is_idle = false;
        }
        if !state.is_closed && !self.is_much(&state) {
            // There are lines, whether it was woken or timed out.
            let _ = self.has_lines.wait_for(&mut state, MOMENT);
        }
        std::mem::swap(&mut state.waiting, lines);
        state.taken_bytes = lines.len();
        true
    }

    /// Refuses further lines; those that are queued are still taken.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_lines.notify_all();
        self.has_room.notify_all();
    }

    /// Bytes of the lines in memory: those that wait and those that are being written.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn taken(queue: &Queue, lines: &mut Vec<u8>) -> String {
        assert!(queue.take(lines));
        String::from_utf8(lines.clone()).unwrap()
    }

    #[test]
    fn a_full_queue_refuses_until_what_was_taken_is_written() {
        let queue = Queue::new(5);
        let mut lines = Vec::new();
        assert_eq!(queue.put_now(b"ab\n"), Put::Queued);
        assert_eq!(queue.put_now(b"c\n"), Put::Queued);
        assert_eq!(queue.put_now(b"d\n"), Put::Refused);
        assert_eq!(taken(&queue, &mut lines), "ab\nc\n");
        assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2);
        // It is not written yet.
        assert_eq!(queue.put_now(b"d\n"), Put::Refused);
        assert_eq!(queue.bytes(), 5);
        queue.close();
        assert!(!queue.take(&mut lines));
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn a_line_that_is_larger_than_the_queue_is_taken_alone() {
        let queue = Queue::new(5);
        assert_eq!(queue.put_now(b"large line\n"), Put::Queued);
        assert_eq!(queue.put_now(b"x\n"), Put::Refused);
    }

    #[test]
    fn who_waits_for_room_goes_on_when_there_is_some() {
        let queue = Arc::new(Queue::new(5));
        queue.put(b"abcd\n");
        let (sender, receiver) = mpsc::channel();
        let second = queue.clone();
        let waiting = thread::spawn(move || sender.send(second.put(b"e\n")).unwrap());
        let mut lines = Vec::new();
        assert_eq!(taken(&queue, &mut lines), "abcd\n");
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty));
        // The next turn of the writer makes room, and waits for the line.
        assert_eq!(taken(&queue, &mut lines), "e\n");
        assert_eq!(receiver.recv(), Ok(Put::Queued));
        waiting.join().unwrap();
    }

    #[test]
    fn closing_refuses_who_waits_and_keeps_what_is_queued() {
        let queue = Arc::new(Queue::new(5));
        queue.put(b"abcd\n");
        let second = queue.clone();
        let waiting = thread::spawn(move || second.put(b"e\n"));
        queue.close();
        assert_eq!(waiting.join().unwrap(), Put::Refused);
        assert_eq!(queue.put(b"f\n"), Put::Refused);
        let mut lines = Vec::new();
        assert_eq!(taken(&queue, &mut lines), "abcd\n");
        assert!(!queue.take(&mut lines));
    }
}
