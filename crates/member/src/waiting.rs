//! Waits for messages. In a simulation, threads are tasks of [`ilion_env::turns`], and give their turn while they wait. Other threads
//! hand over what they have not begun ([`handover`]).

use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use ilion_env::handover;
use ilion_env::turns::give_turn;

use crate::shared::Shared;

/// Waits for the next message.
///
/// # Errors
/// There are no senders any more.
pub(crate) fn receive<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    loop {
        match from.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) if give_turn() || handover::before_wait() => {}
            Err(TryRecvError::Empty) => return from.recv(),
        }
    }
}

/// Waits for the next message until a deadline.
///
/// # Errors
/// The time is over, or there are no senders any more.
pub(crate) fn receive_until<T>(
    shared: &Shared,
    from: &Receiver<T>,
    ends_nanos: u64,
) -> Result<T, RecvTimeoutError> {
    loop {
        match from.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        let left = shared.left(ends_nanos);
        if left.is_zero() {
            return Err(RecvTimeoutError::Timeout);
        }
        if !give_turn() && !handover::before_wait() {
            return from.recv_timeout(left);
        }
    }
}
