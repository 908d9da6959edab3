//! `string.format`: calls the library's function, after checks that it does not use too much memory and prints no address.

use std::sync::Arc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use crate::fuel::Fuel;

/// Makes the function, which calls `format` of the table `string`.
pub(crate) fn make(lua: &Lua, string: &Table, fuel: &Arc<Fuel>) -> mlua::Result<Function> {
    let format: Function = string.raw_get("format")?;
    let fuel = fuel.clone();
    lua.create_function(move |_, (form, mut arguments): (LuaString, MultiValue)| {
        let mut read_bytes = form.as_bytes().len();
        for (conversion, argument) in conversions(&form.as_bytes()).zip(arguments.iter_mut()) {
            fuel.burn(1)?;
            match (conversion, &*argument) {
                (b'p', _) => return Err(mlua::Error::runtime("invalid conversion '%p' to 'format'")),
                (_, Value::String(text)) => {
                    read_bytes = read_bytes.saturating_add(text.as_bytes().len());
                    fuel.check_bytes(read_bytes)?;
                }
                (b's', Value::Table(_) | Value::Function(_)) => {
                    *argument = Value::String(form_of(&format, argument)?);
                }
                _ => {}
            }
        }
        fuel.burn_bytes(read_bytes)?;
        arguments.push_front(Value::String(form));
        format.call::<LuaString>(arguments)
    })
}

/// The text for `%s` of a table or function: the name of its type.
fn form_of(format: &Function, value: &Value) -> mlua::Result<LuaString> {
    format.call(("%s", value.type_name()))
}

/// The letter of each conversion that takes an argument.
fn conversions(form: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = form.iter().copied();
    std::iter::from_fn(move || {
        loop {
            bytes.find(|byte| *byte == b'%')?;
            let mut is_first = true;
            let letter = bytes.find(|byte| {
                let ends = (*byte == b'%' && is_first) || !b"-+ #0123456789.".contains(byte);
                is_first = false;
                ends
            })?;
            if letter != b'%' {
                return Some(letter);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::conversions;

    #[test]
    fn conversions_are_the_letters_that_take_an_argument() {
        let letters: Vec<u8> = conversions(b"a%d %% %5.2f%-10s%p%").collect();
        assert_eq!(letters, b"dfsp");
    }
}
