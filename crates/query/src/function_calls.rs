//! [`FunctionCalls`]: the calls of user-defined functions by one statement: their budget, and their results if a command has them.
//!
//! A function may give another result on another node: the clock limits its time, and Lua does not define the order of `pairs`. So in a
//! cluster the coordinator of a command calls its functions and logs the results, and replicas look them up. Native functions for the time
//! and for ids use the time of the log and the seed of the command. Only replicas know their results, and the coordinator must know the
//! partitions; so it asks whether such functions were called for these.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_script::CallBudget;

use crate::Error;

/// A call: the function, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionCall {
    /// Keyspace of the function.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// The types of its arguments, since two functions of one name may differ only in these.
    pub argument_types: Vec<String>,
    /// The serialized arguments; `None` is null.
    pub arguments: Vec<Option<Bytes>>,
}

/// Calls with their results; `None` is null.
pub type FunctionResults = BTreeMap<FunctionCall, Option<Bytes>>;

/// The calls of user-defined functions by one statement; see the module.
#[derive(Debug)]
pub(crate) struct FunctionCalls {
    budget: CallBudget,
    /// The results that the command has. If given, no function is called.
    given: Option<Arc<FunctionResults>>,
    /// The calls since [`Self::begin_noting`], with their results; `None` before it.
    noted: RefCell<Option<FunctionResults>>,
    /// Whether [`Self::note_volatile`] was called.
    is_volatile: Cell<bool>,
}

impl FunctionCalls {
    /// Calls within a budget. If results are given, no function is called.
    pub fn new(budget: CallBudget, given: Option<Arc<FunctionResults>>) -> Self {
        Self {
            budget,
            given,
            noted: RefCell::default(),
            is_volatile: Cell::default(),
        }
    }

    /// Notes a call of a function that has another result each time: the time, or a new id.
    pub fn note_volatile(&self) {
        self.is_volatile.set(true);
    }

    /// Evaluates something; also returns whether that called such a function.
    pub fn watch_volatile<T>(&self, evaluate: impl FnOnce() -> T) -> (T, bool) {
        self.is_volatile.set(false);
        let value = evaluate();
        (value, self.is_volatile.get())
    }

    /// Starts to note calls with their results.
    pub fn begin_noting(&self) {
        *self.noted.borrow_mut() = Some(FunctionResults::new());
    }

    /// The noted calls.
    pub fn take_noted(&self) -> FunctionResults {
        self.noted.take().unwrap_or_default()
    }

    /// The result of a call: the given one, or that of `compute`.
    ///
    /// # Errors
    /// The function fails, or the given results lack this call.
    pub fn result(
        &self,
        call: impl FnOnce() -> FunctionCall,
        compute: impl FnOnce(&CallBudget) -> Result<Option<Bytes>, Error>,
    ) -> Result<Option<Bytes>, Error> {
        if let Some(given) = &self.given {
            let call = call();
            let result = given.get(&call);
            return result.cloned().ok_or_else(|| {
                Error::Invalid(format!(
                    "The arguments of {}.{} are known only when the statement is executed, as those of now() are: in a cluster \
                     a statement with a condition, a counter or a position in a list cannot call a user-defined function with them",
                    call.keyspace, call.name
                ))
            });
        }
        let result = compute(&self.budget)?;
        if let Some(noted) = &mut *self.noted.borrow_mut() {
            noted.insert(call(), result.clone());
        }
        Ok(result)
    }
}
