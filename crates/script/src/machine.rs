//! An interpreter with a compiled body.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_types::CqlType;
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, VmState};

use crate::fuel::{Fuel, Rung};
use crate::{from_lua, sandbox, to_lua};

/// Bytes of garbage that an idle machine may keep from its last call.
const LEFT_OVER_BYTES_MAX: usize = 32 << 10;

/// An interpreter with a compiled body. It keeps no state of earlier calls: everything that a script can reach is read-only, and a
/// machine whose `_ENV` was set is dropped.
#[derive(Debug)]
pub(crate) struct Machine {
    lua: Lua,
    body: Function,
    environment: Table,
    fuel: Arc<Fuel>,
    /// Bytes of memory that the machine uses while it runs no call.
    own_bytes: usize,
    /// The rung of the last call.
    rung: Option<Rung>,
}

impl Machine {
    /// Compiles `source` within `memory_bytes`.
    pub(crate) fn new(source: &str, memory_bytes: usize) -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let fuel = Arc::new(Fuel::new());
        let environment = sandbox::environment(&lua, &fuel)?;
        lua.set_memory_limit(lua.used_memory().saturating_add(memory_bytes))?;
        let body = lua
            .load(source)
            .set_name("=function")
            .set_mode(ChunkMode::Text)
            .set_environment(environment.clone())
            .into_function()?;
        // Garbage of the compiler must not count as the machine's own memory.
        lua.gc_collect()?;
        let own_bytes = lua.used_memory();
        Ok(Self {
            lua,
            body,
            environment,
            fuel,
            own_bytes,
            rung: None,
        })
    }

    /// Runs the body on a rung, until `deadline`.
    pub(crate) fn run(
        &mut self,
        types: &[CqlType],
        arguments: &[Option<Bytes>],
        return_type: &CqlType,
        rung: &Rung,
        (deadline, time): (Instant, Duration),
    ) -> mlua::Result<Option<Bytes>> {
        self.enter(rung)?;
        self.fuel.refill(rung, deadline, time);
        let values = types
            .iter()
            .zip(arguments)
            .map(|(ty, argument)| to_lua::value(&self.lua, &self.fuel, ty, argument.as_deref()))
            .collect::<mlua::Result<MultiValue>>()?;
        let returned: mlua::Value = self.body.call(values)?;
        let value = from_lua::value(&returned, return_type, &self.fuel)?;
        Ok(value.map(Bytes::from))
    }

    fn enter(&mut self, rung: &Rung) -> mlua::Result<()> {
        if self.rung.as_ref() == Some(rung) {
            return Ok(());
        }
        let memory_max = self.own_bytes.saturating_add(rung.memory_bytes);
        self.lua.set_memory_limit(memory_max)?;
        let (fuel, unwatched) = (self.fuel.clone(), rung.unwatched);
        let triggers = HookTriggers::new().every_nth_instruction(unwatched);
        self.lua.set_hook(triggers, move |_, _| {
            fuel.watch(unwatched)?;
            Ok(VmState::Continue)
        })?;
        self.rung = Some(*rung);
        Ok(())
    }

    /// True if another call may use the machine: its state is as after compiling, except for a little garbage.
    pub(crate) fn is_clean(&self) -> bool {
        if self.body.environment().as_ref() != Some(&self.environment) {
            return false;
        }
        self.is_small() || (self.lua.gc_collect().is_ok() && self.is_small())
    }

    fn is_small(&self) -> bool {
        self.lua.used_memory() <= self.own_bytes.saturating_add(LEFT_OVER_BYTES_MAX)
    }

    /// The largest number of steps that was ever paid for at once.
    #[cfg(test)]
    pub fn largest_payment(&self) -> u32 {
        self.fuel.largest_payment()
    }
}
