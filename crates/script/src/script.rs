//! One function: its compiled body, called with serialized values.

use std::sync::Arc;

use bytes::Bytes;
use ilion_types::CqlType;
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, VmState};
use parking_lot::Mutex;

use crate::fuel::{Fuel, Limits};
use crate::{from_lua, sandbox, to_lua};

/// Instructions between two looks at the limits.
const INSTRUCTIONS_UNWATCHED: u32 = 128;
/// Machines that wait for the next call; more calls at once make their own.
const IDLE_MAX: usize = 16;
/// Words that no argument can be called by.
const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Why a script was not compiled, or did not give a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body is no Lua, or an argument has a name that Lua cannot use. The author of the function must act.
    #[error("{0}")]
    Source(String),
    /// It raised an error, returned what is no value of its type, or reached a limit.
    #[error("{0}")]
    Failed(String),
}

/// A function in Lua.
#[derive(Debug)]
pub struct Script {
    source: String,
    argument_types: Vec<CqlType>,
    return_type: CqlType,
    limits: Limits,
    /// Machines between two calls.
    idle: Mutex<Vec<Machine>>,
}

/// An interpreter that has compiled the body. It holds nothing of earlier calls: what a script can reach is read-only.
#[derive(Debug)]
struct Machine {
    lua: Lua,
    body: Function,
    fuel: Arc<Fuel>,
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
        let script = Self {
            source: source(arguments, body)?,
            argument_types: arguments.iter().map(|(_, ty)| ty.clone()).collect(),
            return_type: return_type.clone(),
            limits,
            idle: Mutex::default(),
        };
        let machine = script.machine()?;
        script.idle.lock().push(machine);
        Ok(script)
    }

    /// Runs it. Nothing is null; arguments are in the order of the declaration.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn call(&self, arguments: &[Option<Bytes>]) -> Result<Option<Bytes>, Error> {
        let idle = self.idle.lock().pop();
        let machine = match idle {
            Some(machine) => machine,
            None => self.machine()?,
        };
        let result = self.run(&machine, arguments);
        // A machine that failed may be left with little memory, so that it does not stay.
        if result.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(machine);
            }
        }
        result.map_err(|failed| Error::Failed(reason(&failed)))
    }

    fn run(&self, machine: &Machine, arguments: &[Option<Bytes>]) -> mlua::Result<Option<Bytes>> {
        machine.fuel.refill();
        let types = self.argument_types.iter();
        let values = types
            .zip(arguments)
            .map(|(ty, argument)| to_lua::value(&machine.lua, ty, argument.as_deref()))
            .collect::<mlua::Result<MultiValue>>()?;
        let returned: mlua::Value = machine.body.call(values)?;
        let value = from_lua::value(&returned, &self.return_type)?;
        Ok(value.map(Bytes::from))
    }

    fn machine(&self) -> Result<Machine, Error> {
        self.new_machine()
            .map_err(|refused| Error::Source(reason(&refused)))
    }

    fn new_machine(&self) -> mlua::Result<Machine> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let fuel = Arc::new(Fuel::new(self.limits.clone()));
        let environment = sandbox::environment(&lua, &fuel)?;
        let body = lua
            .load(&self.source)
            .set_name("=function")
            .set_mode(ChunkMode::Text)
            .set_environment(environment)
            .into_function()?;
        let watched = fuel.clone();
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS_UNWATCHED);
        lua.set_hook(triggers, move |_, _| {
            watched
                .burn(INSTRUCTIONS_UNWATCHED)
                .map_err(mlua::Error::runtime)?;
            Ok(VmState::Continue)
        })?;
        lua.set_memory_limit(lua.used_memory() + self.limits.memory_bytes)?;
        Ok(Machine { lua, body, fuel })
    }
}

/// The chunk: the arguments stand on the first line of the body, so that line numbers in messages are those of the body.
fn source(arguments: &[(String, CqlType)], body: &str) -> Result<String, Error> {
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

/// What went wrong, without the stack of the interpreter.
fn reason(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => reason(cause),
        mlua::Error::MemoryError(_) => "it took more memory than it may".to_owned(),
        mlua::Error::RuntimeError(message) | mlua::Error::SyntaxError { message, .. } => {
            let message = message.split("\nstack traceback:").next().unwrap_or_default();
            message.to_owned()
        }
        other => other.to_string(),
    }
}
