//! [`Lanes`]: the threads that answer the requests of other nodes, a pool for each [`Lane`].
//!
//! A lane takes its requests in the order of their arrival. A lane that is busy for long keeps nothing in another lane waiting: reads of
//! large ranges, waits for the log and copies have threads of their own.

use std::io;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::kind::Lane;
use crate::options::Options;

/// What a thread does next.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// See the module.
pub(crate) struct Lanes {
    /// In the order of [`Lane::ALL`].
    queues: Vec<Sender<Task>>,
}

/// The threads of the lanes.
pub(crate) struct LaneThreads {
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    /// Starts the threads. They end when the lanes are dropped and their queues are empty.
    pub fn start(options: &Options) -> io::Result<(Self, LaneThreads)> {
        let mut lanes = Self { queues: Vec::new() };
        let mut threads = Vec::new();
        for lane in Lane::ALL {
            let (queue, tasks) = bounded::<Task>(options.waiting_max);
            lanes.queues.push(queue);
            for index in 0..options.threads_of(lane) {
                let name = format!("ilion-node-{}-{index}", lane.name());
                let tasks = tasks.clone();
                threads.push(
                    std::thread::Builder::new()
                        .name(name)
                        .spawn(move || run(&tasks))?,
                );
            }
        }
        Ok((lanes, LaneThreads { threads }))
    }

    /// Queues a task. Returns false if too many wait.
    pub fn put(&self, lane: Lane, task: Task) -> bool {
        let queue = self.queues.get(lane as usize);
        queue.is_some_and(|queue| queue.try_send(task).is_ok())
    }
}

impl LaneThreads {
    /// Waits for their end.
    pub fn join(self) {
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread that answers other nodes has panicked");
            }
        }
    }
}

fn run(tasks: &Receiver<Task>) {
    while let Ok(task) = tasks.recv() {
        task();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn a_lane_that_is_full_holds_up_no_other_one() {
        let options = Options {
            threads: [1; 4],
            waiting_max: 1,
            ..Options::default()
        };
        let (lanes, threads) = Lanes::start(&options).unwrap();
        let held = Arc::new(Barrier::new(2));
        let begun = Arc::new(Barrier::new(2));
        let (at_start, at_end) = (begun.clone(), held.clone());
        let task: Task = Box::new(move || {
            at_start.wait();
            at_end.wait();
        });
        assert!(lanes.put(Lane::Heavy, task));
        begun.wait();
        assert!(lanes.put(Lane::Heavy, Box::new(|| {})), "one may wait");
        assert!(!lanes.put(Lane::Heavy, Box::new(|| {})));
        let (tell, told) = bounded(1);
        assert!(lanes.put(Lane::Point, Box::new(move || tell.send(7).unwrap())));
        assert_eq!(told.recv(), Ok(7));
        held.wait();
        drop(lanes);
        threads.join();
    }
}
