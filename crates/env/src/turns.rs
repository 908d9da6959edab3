//! [`Turns`]: threads that take turns, so that a simulation decides which of them goes on, and one seed repeats a run.
//!
//! The threads of a `Turns` are its *tasks*. One task runs at a time, until it waits: then it calls [`give_turn`], and the scheduler, the
//! thread that calls [`Turns::run`], chooses the next one. Code that may run in a simulation starts its threads with [`spawn`], and waits with
//! [`give_turn`], [`pause`] or [`wait_for`]. In a thread that is no task, these behave as the functions of the standard library.
//!
//! A task must not give its turn while it holds a lock that another task takes: that task would block without giving its own turn.
//! [`Turns::run`] panics when a turn takes longer than `TURN_MAX`.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::handover;

mod workers;

use workers::Workers;

/// If a turn takes longer than this, its task is blocked by another task.
const TURN_MAX: Duration = Duration::from_secs(20);
/// The scheduler looks so often while a turn takes long. A process that was suspended finds one of these waits over when it goes on, and
/// the task has the rest to end its turn.
const WAITS: u32 = 4;

/// A task of a [`Turns`]. Numbers ascend in the order in which tasks are spawned.
pub type TaskId = u64;

#[derive(Default)]
struct State {
    /// The tasks that have not ended, each with its name and the condition on which it waits for its turn.
    tasks: BTreeMap<TaskId, (String, Arc<Condvar>)>,
    last: TaskId,
    /// The task whose turn it is; `None` if it is the scheduler's turn.
    running: Option<TaskId>,
    /// The message of the first panic of a task, with the task's name.
    panicked: Option<String>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when a task gives its turn back or ends; the scheduler waits for this.
    given: Condvar,
    workers: Arc<Workers>,
}

/// Tasks that take turns (see the module). Clones share the tasks.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

impl Default for Turns {
    /// No tasks. They will run in threads that ended tasks of this thread's other `Turns` have left.
    fn default() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            given: Condvar::new(),
            workers: Workers::of_thread(),
        }))
    }
}

/// The task of this thread.
#[derive(Clone)]
struct Own {
    turns: Turns,
    task: TaskId,
    woken: Arc<Condvar>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// What [`spawn`] has started.
pub struct Spawned<T>(Started<T>);

enum Started<T> {
    Thread(JoinHandle<T>),
    /// A task, and its result if it has ended without a panic.
    Task(Turns, TaskId, Arc<Mutex<Option<T>>>),
}

impl<T> Spawned<T> {
    /// Waits until the thread has ended, and returns its result; `None` if it panicked. Only a task can wait for a task: in any other
    /// thread, this returns `None` at once for a task that has not ended.
    pub fn join(self) -> Option<T> {
        match self.0 {
            Started::Thread(thread) => thread.join().ok(),
            Started::Task(turns, task, result) => {
                while turns.is_alive(task) {
                    if !give_turn() {
                        return None;
                    }
                }
                result.lock().take()
            }
        }
    }
}

impl Turns {
    /// Starts a task. It runs when [`Self::run`] is called for it.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Spawned<T>> {
        let woken = Arc::new(Condvar::new());
        let task = {
            let mut state = self.0.state.lock();
            state.last += 1;
            let task = state.last;
            state.tasks.insert(task, (name.to_owned(), woken.clone()));
            task
        };
        let own = Own {
            turns: self.clone(),
            task,
            woken,
        };
        let result = Arc::new(Mutex::new(None));
        let of_task = result.clone();
        let run = self.0.workers.run(Box::new(move || own.run(body, &of_task)));
        if run.is_err() {
            self.0.state.lock().tasks.remove(&task);
        }
        run.map(|()| Spawned(Started::Task(self.clone(), task, result)))
    }

    /// The tasks that have not ended and whose names begin with this, in the order in which they were spawned.
    pub fn tasks(&self, prefix: &str) -> Vec<TaskId> {
        let state = self.0.state.lock();
        let tasks = state.tasks.iter();
        let named = tasks.filter(|(_, (name, _))| name.starts_with(prefix));
        named.map(|(task, _)| *task).collect()
    }

    /// The names of the tasks that have not ended.
    pub fn names(&self) -> Vec<String> {
        self.0
            .state
            .lock()
            .tasks
            .values()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Ends the turn of the running task.
    fn give_back(&self, state: &mut State) {
        state.running = None;
        self.0.given.notify_one();
    }

    fn is_alive(&self, task: TaskId) -> bool {
        self.0.state.lock().tasks.contains_key(&task)
    }

    /// Gives a task its turn, and returns when the task has given it back or has ended; at once if it has ended before.
    ///
    /// Requires: the caller is not a task.
    ///
    /// # Errors
    /// This task or an earlier one has panicked; the error is the first message.
    ///
    /// # Panics
    /// The turn takes too long: the task waits for another one without giving its turn.
    pub fn run(&self, task: TaskId) -> Result<(), String> {
        let mut state = self.0.state.lock();
        let Some((name, woken)) = state.tasks.get(&task).cloned() else {
            return Ok(());
        };
        state.running = Some(task);
        woken.notify_one();
        let mut waits = 0;
        while state.running.is_some() {
            assert!(
                waits < WAITS,
                "{name} waits for another task without giving its turn"
            );
            let waited = self.0.given.wait_for(&mut state, TURN_MAX / WAITS);
            waits += u32::from(waited.timed_out());
        }
        match &state.panicked {
            Some(message) => Err(message.clone()),
            None => Ok(()),
        }
    }
}

impl Own {
    /// Waits for the first turn, calls `body`, keeps its result, and ends the task.
    fn run<T>(self, body: impl FnOnce() -> T, result: &Mutex<Option<T>>) {
        self.wait(self.turns.0.state.lock());
        OWN.set(Some(self.clone()));
        let done = catch_unwind(AssertUnwindSafe(body));
        OWN.set(None);
        let mut state = self.turns.0.state.lock();
        let ended = state.tasks.remove(&self.task);
        match done {
            Ok(done) => *result.lock() = Some(done),
            Err(panic) => {
                let name = ended.map(|(name, _)| name).unwrap_or_default();
                let message = format!("{name} panicked: {}", message_of(panic.as_ref()));
                state.panicked.get_or_insert(message);
            }
        }
        self.turns.give_back(&mut state);
    }

    /// Waits for the turn of this task.
    fn wait(&self, mut state: MutexGuard<'_, State>) {
        while state.running != Some(self.task) {
            self.woken.wait(&mut state);
        }
    }

    fn give(&self) {
        let mut state = self.turns.0.state.lock();
        self.turns.give_back(&mut state);
        self.wait(state);
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

fn own() -> Option<Own> {
    OWN.with_borrow(Clone::clone)
}

/// Starts a thread: a task of the same [`Turns`] if the calling thread is a task.
///
/// # Errors
/// The system has no thread left.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Spawned<T>> {
    if let Some(own) = own() {
        return own.turns.spawn(name, body);
    }
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(body).map(|thread| Spawned(Started::Thread(thread)))
}

/// Keeps this thread, and the tasks that it starts, on one of the cores that it may use, counted from 0 and around. Threads that take turns
/// need no second core, and hand over much faster within one: a simulation takes little more than half the time.
#[cfg(target_os = "linux")]
pub fn stay_on_core(number: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let wanted = number % (allowed.count() as usize).max(1);
    let mut own = rustix::thread::CpuSet::new();
    cores.skip(wanted).take(1).for_each(|core| own.set(core));
    // If the system forbids it, a run only takes longer.
    let _ = rustix::thread::sched_setaffinity(None, &own);
}

/// Only Linux lets a thread choose its core.
#[cfg(not(target_os = "linux"))]
pub fn stay_on_core(_number: usize) {}

/// Gives the turn of this task to the scheduler, and returns true at the next turn of this task. Returns false at once if this thread is
/// not a task: then the caller must wait by other means.
pub fn give_turn() -> bool {
    let own = own();
    if let Some(own) = &own {
        own.give();
    }
    own.is_some()
}

/// Sleeps for this duration. A task gives its turn once instead.
pub fn pause(duration: Duration) {
    if !give_turn() {
        std::thread::sleep(duration);
    }
}

/// Waits until `condvar` is notified, for `at_most` at most. A task gives its turn once instead, and a thread that has work to hand over
/// ([`handover`]) does that instead, both without the lock of `guard`. Callers must check afterwards whether what they wait for has happened.
pub fn wait_for<T>(condvar: &Condvar, guard: &mut MutexGuard<'_, T>, at_most: Duration) {
    match own() {
        Some(own) => MutexGuard::unlocked(guard, || own.give()),
        None if handover::is_set() && MutexGuard::unlocked(guard, handover::before_wait) => {}
        None => drop(condvar.wait_for(guard, at_most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_in_the_order_of_their_turns() {
        let (turns, told) = (Turns::default(), Arc::new(Mutex::new(Vec::new())));
        for name in ["one", "two"] {
            let told = told.clone();
            let body = move || {
                told.lock().push(format!("{name} begins"));
                let of_child = told.clone();
                let child = spawn("child", move || of_child.lock().push(format!("child of {name}")));
                child.unwrap().join();
                told.lock().push(format!("{name} ends"));
            };
            drop(turns.spawn(name, body).unwrap());
        }
        for task in [2, 1, 3, 4, 1, 2] {
            turns.run(task).unwrap();
        }
        assert_eq!(turns.tasks(""), []);
        let told = told.lock().join(", ");
        assert_eq!(
            told,
            "two begins, one begins, child of two, child of one, one ends, two ends"
        );
    }

    #[test]
    fn a_panic_of_a_task_is_reported() {
        let turns = Turns::default();
        let panics = turns.spawn("bad", || panic!("no {}", 7));
        assert_eq!(turns.run(1), Err("bad panicked: no 7".to_owned()));
        assert_eq!(panics.unwrap().join(), None::<()>);
    }

    #[test]
    fn threads_that_are_no_tasks_wait_as_usual() {
        assert!(!give_turn());
        let (flag, raised) = (Arc::new(Mutex::new(false)), Arc::new(Condvar::new()));
        let raises = {
            let (flag, raised) = (flag.clone(), raised.clone());
            spawn("raises", move || {
                *flag.lock() = true;
                raised.notify_all();
            })
        };
        let mut is_raised = flag.lock();
        while !*is_raised {
            wait_for(&raised, &mut is_raised, Duration::from_secs(60));
        }
        drop(is_raised);
        assert_eq!(raises.unwrap().join(), Some(()));
    }
}
