//! One function: its compiled body, called with serialized values.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_types::CqlType;
use parking_lot::Mutex;

use crate::budget::CallBudget;
use crate::fuel::{Limits, Rung, Spent, rungs, spent_of};
use crate::machine::Machine;
use crate::message::reason;
use crate::threads::{self, Lost};

/// Largest number of idle machines that are kept. Further concurrent calls make machines of their own.
const IDLE_MAX: usize = 16;
/// Longest body in bytes. Compiling is not metered, and may take time in proportion to the square of the length.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long an attempt may hold the caller's thread.
const INLINE_TIME: Duration = Duration::from_millis(20);
/// Memory of arguments in Lua, as a multiple of their bytes.
const ARGUMENT_ROOM: usize = 4;
/// Words that cannot be argument names.
const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Why compiling or calling a script failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body is not Lua, or an argument has a name that Lua cannot use. The author of the function must act.
    #[error("{0}")]
    Source(String),
    /// The script raised an error, returned a value of another type, or reached a limit.
    #[error("{0}")]
    Failed(String),
}

/// A function in Lua.
#[derive(Clone, Debug)]
pub struct Script(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: String,
    argument_types: Vec<CqlType>,
    return_type: CqlType,
    limits: Limits,
    /// The rungs, from the smallest limits to those of the function.
    rungs: Vec<Rung>,
    /// The rung on which calls start. It rises when a call exceeds the instructions or memory of a lower rung.
    first_rung: AtomicUsize,
    /// Idle machines.
    idle: Mutex<Vec<Machine>>,
}

/// Why an attempt failed.
enum Failure {
    /// The limit of the rung that was reached.
    Spent(Spent),
    Other(String),
}

impl Script {
    /// Compiles the body of a function.
    ///
    /// # Errors
    /// [`Error::Source`].
    pub fn compile(
        arguments: &[(String, CqlType)],
        return_type: &CqlType,
        body: &str,
        limits: Limits,
    ) -> Result<Self, Error> {
        let compiled = Compiled {
            source: source(arguments, body)?,
            argument_types: arguments.iter().map(|(_, ty)| ty.clone()).collect(),
            return_type: return_type.clone(),
            rungs: rungs(&limits),
            limits,
            first_rung: AtomicUsize::default(),
            idle: Mutex::default(),
        };
        let machine = compiled.machine()?;
        compiled.idle.lock().push(machine);
        Ok(Self(Arc::new(compiled)))
    }

    /// Calls the function. `None` is null; arguments are in the order of the declaration.
    ///
    /// A call has no side effects. So a call that needs more memory or instructions than most is run again from its beginning, on
    /// a thread of its own. The caller waits for that thread until the deadline and no longer.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn call(&self, arguments: &[Option<Bytes>], budget: &CallBudget) -> Result<Option<Bytes>, Error> {
        let started = Instant::now();
        let mut rung = self.0.first_rung(arguments);
        loop {
            let result = self.attempt(rung, arguments, started, budget);
            let spent = match result {
                Ok(value) => return Ok(value),
                Err(Failure::Other(message)) => return Err(Error::Failed(message)),
                Err(Failure::Spent(spent)) => spent,
            };
            if !self.0.goes_on(rung, spent) {
                return Err(Error::Failed(spent.to_string()));
            }
            rung += 1;
            if !matches!(spent, Spent::Time(_)) {
                self.0.first_rung.fetch_max(rung, Relaxed);
            }
        }
    }

    fn attempt(
        &self,
        rung: usize,
        arguments: &[Option<Bytes>],
        started: Instant,
        budget: &CallBudget,
    ) -> Result<Option<Bytes>, Failure> {
        let compiled = &self.0;
        if !compiled.rungs[rung].is_apart {
            let time = INLINE_TIME.min(compiled.limits.time);
            return compiled.attempt(rung, arguments, (started + time, time));
        }
        if budget.left().is_zero() {
            return Err(Failure::Other(budget.refusal()));
        }
        let time = compiled.limits.time.min(budget.left());
        let deadline = started + time;
        let (script, owned) = (compiled.clone(), arguments.to_vec());
        let went_apart = Instant::now();
        let result = threads::run_until(deadline, move || script.attempt(rung, &owned, (deadline, time)));
        budget.spend(went_apart.elapsed());
        let late = || Spent::Time(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match result {
            Ok(result) => result,
            Err(Lost::Late) => Err(Failure::Spent(late())),
            Err(Lost::Broken) => Err(Failure::Other("no thread could run it to its end".to_owned())),
        }
    }
}

impl Compiled {
    /// The rung on which a call with these arguments starts.
    fn first_rung(&self, arguments: &[Option<Bytes>]) -> usize {
        let bytes: usize = arguments.iter().flatten().map(Bytes::len).sum();
        let room = bytes.saturating_mul(ARGUMENT_ROOM);
        let fitting = self.rungs.iter().position(|rung| rung.memory_bytes >= room);
        let last = self.rungs.len() - 1;
        fitting.unwrap_or(last).max(self.first_rung.load(Relaxed))
    }

    /// True if the call can be tried again: the next rung has more of the limit that was reached.
    fn goes_on(&self, rung: usize, spent: Spent) -> bool {
        let is_last = rung + 1 >= self.rungs.len();
        let is_apart = self.rungs[rung].is_apart;
        match spent {
            _ if is_last => false,
            Spent::Memory => true,
            Spent::Instructions(_) | Spent::Time(_) => !is_apart,
        }
    }

    fn attempt(
        &self,
        rung: usize,
        arguments: &[Option<Bytes>],
        until: (Instant, Duration),
    ) -> Result<Option<Bytes>, Failure> {
        let idle = self.idle.lock().pop();
        let mut machine = match idle {
            Some(machine) => machine,
            None => self
                .machine()
                .map_err(|refused| Failure::Other(refused.to_string()))?,
        };
        let result = machine.run(
            &self.argument_types,
            arguments,
            &self.return_type,
            &self.rungs[rung],
            until,
        );
        // A machine that failed may have little memory left, so it is dropped.
        if result.is_ok() && machine.is_clean() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(machine);
            }
        }
        result.map_err(|error| match spent_of(&error) {
            Some(spent) => Failure::Spent(spent),
            None => Failure::Other(reason(&error)),
        })
    }

    fn machine(&self) -> Result<Machine, Error> {
        Machine::new(&self.source, self.limits.memory_bytes)
            .map_err(|refused| Error::Source(reason(&refused)))
    }
}

/// The source for Lua. The arguments are on the first line of the body, so that messages have the body's line numbers.
fn source(arguments: &[(String, CqlType)], body: &str) -> Result<String, Error> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Error::Source(format!(
            "the body has {} bytes, more than the {BODY_BYTES_MAX} that it may have",
            body.len()
        )));
    }
    if let Some((name, _)) = arguments.iter().find(|(name, _)| !is_lua_name(name)) {
        return Err(Error::Source(format!(
            "argument name '{name}' cannot be used in Lua: it has to be of ASCII letters, digits and _, and no keyword"
        )));
    }
    let names: Vec<&str> = arguments.iter().map(|(name, _)| name.as_str()).collect();
    Ok(match names.as_slice() {
        [] => body.to_owned(),
        names => format!("local {} = ... ; {body}", names.join(", ")),
    })
}

fn is_lua_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !KEYWORDS.contains(&name)
}
