//! [`Arrivals`]: what a tail follows and what has arrived for it, shared between its caller, its tasks, and those who learn more of the logs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ilion_commitlog::{Delivered, TailError};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::time::sleep_until;
use uuid::Uuid;

use crate::following::{Following, Own};
use crate::splitting::{ReadFrom, Splitting};
use crate::topics::Sharing;

/// What has arrived for one tail.
pub(crate) struct Arrivals {
    /// Never held while a broker is asked.
    pub state: Mutex<State>,
    /// Notified when records or a failure have arrived.
    pub come: Condvar,
    /// Once this many bytes have arrived, brokers are not asked for more.
    bytes_max: usize,
}

/// See [`Arrivals`].
pub(crate) struct State {
    pub following: Following,
    pub splitting: Splitting,
    pub leaders: HashMap<u32, i32>,
    pub wakers: BTreeMap<i32, Arc<Notify>>,
    /// True while there is no room, so that brokers are not asked.
    pub is_full: bool,
}

impl State {
    /// Wakes all tasks, since they may have something else to read.
    pub(crate) fn wake(&self) {
        self.wakers.values().for_each(|waker| waker.notify_one());
    }

    /// Follows a log from an offset on.
    pub(crate) fn follow(&mut self, log: u32, from: u64) {
        let read_from = self.splitting.follow(log, from);
        self.read_from(read_from);
    }

    fn read_from(&mut self, read_from: Option<ReadFrom>) {
        if let Some(ReadFrom { partition, offset }) = read_from {
            self.following.follow(partition, offset, Instant::now());
        }
    }

    /// Follows a log no longer.
    pub(crate) fn leave(&mut self, log: u32) {
        if let Some(partition) = self.splitting.leave(log) {
            self.following.leave(partition);
        }
    }

    /// Whether [`Self::take`] has records or a failure to return.
    pub(crate) fn has_come(&self) -> bool {
        self.splitting.has_failed() || self.following.has_come()
    }

    /// What comes next of the logs, or why one of them is not followed any more.
    pub(crate) fn take(&mut self) -> Result<Vec<Delivered>, TailError> {
        if let Some(failure) = self.splitting.take_failure() {
            return Err(failure);
        }
        match self.following.take() {
            Ok(placed) => Ok(self.splitting.split(placed)),
            Err(failed) => {
                let read_from = self.splitting.fail(failed);
                self.read_from(read_from);
                self.splitting.take_failure().map_or(Ok(Vec::new()), Err)
            }
        }
    }

    /// Called when the caller has taken records.
    pub(crate) fn make_room(&mut self) {
        if std::mem::take(&mut self.is_full) {
            self.wake();
        }
    }

    fn is_behind(&self, broker: i32) -> bool {
        self.following
            .is_behind(|partition| self.leaders.get(&partition) == Some(&broker))
    }

    /// Wakes the tasks of brokers that have records of `partitions` which have not come.
    fn wake_behind(&self, partitions: impl Iterator<Item = u32>) {
        let leaders = partitions.filter_map(|partition| self.leaders.get(&partition).copied());
        let mut brokers: Vec<i32> = leaders.collect();
        brokers.sort_unstable();
        brokers.dedup();
        for broker in brokers {
            if let Some(waker) = self.wakers.get(&broker).filter(|_| self.is_behind(broker)) {
                waker.notify_one();
            }
        }
    }
}

impl Arrivals {
    pub(crate) fn new(cluster: Uuid, sharing: Sharing, bytes_max: usize) -> Self {
        let state = State {
            following: Following::new(cluster, sharing),
            splitting: Splitting::new(sharing),
            leaders: HashMap::new(),
            wakers: BTreeMap::new(),
            is_full: false,
        };
        Self {
            state: Mutex::new(state),
            come: Condvar::new(),
            bytes_max,
        }
    }

    /// Whether brokers must not be asked for more.
    pub(crate) fn is_full(&self, following: &Following) -> bool {
        following.bytes() >= self.bytes_max
    }

    /// Waits for a time, or until the broker is known to have records that have not come.
    pub(crate) async fn rest(&self, broker: i32, waker: &Notify, time: Duration) {
        let ends = Instant::now() + time;
        while !self.state.lock().is_behind(broker) {
            tokio::select! {
                () = waker.notified() => {}
                () = sleep_until(ends.into()) => return,
            }
        }
    }

    fn reach(&self, partition: u32, end: i64) {
        let mut state = self.state.lock();
        state.following.reach(partition, end);
        state.wake_behind(std::iter::once(partition));
    }

    fn receive_own(&self, own: &[Own]) {
        let mut state = self.state.lock();
        for own in own {
            match self.is_full(&state.following) {
                true => state.following.reach(own.partition, own.end()),
                false => state.following.receive_own(own.clone()),
            }
        }
        state.wake_behind(own.iter().map(|own| own.partition));
        let has_come = state.following.has_come();
        drop(state);
        if has_come {
            self.come.notify_all();
        }
    }
}

/// The arrivals of all tails that exist.
#[derive(Default)]
pub(crate) struct Tails(Mutex<Vec<Weak<Arrivals>>>);

impl Tails {
    pub(crate) fn add(&self, arrivals: &Arc<Arrivals>) {
        let mut tails = self.0.lock();
        tails.retain(|tail| tail.strong_count() > 0);
        tails.push(Arc::downgrade(arrivals));
    }

    /// Notes that a partition has records below `end`: tails that follow it fetch them now.
    pub(crate) fn reach(&self, partition: u32, end: u64) {
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        self.each(|tail| tail.reach(partition, end));
    }

    /// Gives tails that follow these partitions the records that were appended, which spares fetching them.
    pub(crate) fn receive_own(&self, own: &[Own]) {
        self.each(|tail| tail.receive_own(own));
    }

    fn each(&self, visit: impl Fn(&Arrivals)) {
        let tails: Vec<Arc<Arrivals>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        tails.iter().for_each(|tail| visit(tail));
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    const SHARING: Sharing = Sharing {
        tablets: 4,
        partitions: 4,
        meta_log: u32::MAX,
    };
    const PATIENCE: Duration = Duration::from_secs(30);
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_rest_ends_when_its_broker_has_more_of_a_partition_that_is_followed() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let arrivals = Arc::new(Arrivals::new(Uuid::nil(), SHARING, 100));
            let wakers: Vec<Arc<Notify>> = (0..2).map(|_| Arc::default()).collect();
            {
                let mut state = arrivals.state.lock();
                state.leaders = HashMap::from([(1, 0), (2, 1)]);
                state.wakers = wakers
                    .iter()
                    .cloned()
                    .enumerate()
                    .map(|(broker, waker)| (broker as i32, waker))
                    .collect();
                state.follow(1, 0);
                state.follow(2, 0);
            }
            let tails = Tails::default();
            tails.add(&arrivals);
            let resting = |broker: i32| {
                let (arrivals, waker) = (arrivals.clone(), wakers[broker as usize].clone());
                async move { arrivals.rest(broker, &waker, LONG).await }
            };
            let (first, second) = (tokio::spawn(resting(0)), tokio::spawn(resting(1)));
            tokio::task::yield_now().await;
            tails.reach(1, 5);
            timeout(PATIENCE, first).await.unwrap().unwrap();
            tokio::task::yield_now().await;
            assert!(!second.is_finished());
            let own = Own {
                partition: 2,
                base_offset: 7,
                time_millis: 1,
                values: vec![bytes::Bytes::from_static(b"x")],
            };
            tails.receive_own(&[own]);
            timeout(PATIENCE, second).await.unwrap().unwrap();
            timeout(PATIENCE, arrivals.rest(1, &wakers[1], LONG))
                .await
                .unwrap();
        });
    }
}
