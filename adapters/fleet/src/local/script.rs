//! The scripts that the servers run, run here: the same text, in the same Lua.

use core::error::Error;
use std::rc::Rc;

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value, Variadic};

/// What the scripts need of an engine: a clock, and hashes under keys.
pub(crate) trait Hashes {
    /// Why a command failed.
    type Fault: Error + Copy + Send + Sync + 'static;

    /// Microseconds of the engine's clock, the same for a whole step.
    fn micros(&self) -> u64;
    fn get(&self, key: &str, field: &str) -> Result<Option<String>, Self::Fault>;
    fn all(&self, key: &str) -> Result<Vec<(String, String)>, Self::Fault>;
    fn set(&self, key: &str, field: &str, value: &str) -> Result<(), Self::Fault>;
    fn remove(&self, key: &str, field: &str) -> Result<bool, Self::Fault>;
    fn count(&self, key: &str) -> Result<u32, Self::Fault>;
    /// Some fields, others each time.
    fn some(&self, key: &str, most: u32) -> Result<Vec<String>, Self::Fault>;
    fn expire(&self, key: &str, millis: u64) -> Result<(), Self::Fault>;
}

/// Why a step was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal<F> {
    /// The script said so. Its text begins with a code.
    Said(String),
    /// A command failed.
    Failed(F),
    /// The script itself is wrong, or there is no memory for it.
    Script,
}

/// A script, ready to be run on some hashes.
#[derive(Debug)]
pub(crate) struct Script {
    lua: Lua,
    step: Function,
}

impl Script {
    /// Compiles `text`. It has no way to the system but `hashes`.
    pub(crate) fn new<H: Hashes + 'static>(text: &str, hashes: Rc<H>) -> mlua::Result<Self> {
        let libraries = StdLib::MATH | StdLib::STRING | StdLib::TABLE;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let redis = lua.create_table()?;
        let call = lua.create_function(move |lua: &Lua, words: Variadic<String>| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            command(lua, &*hashes, &words)
        })?;
        redis.set("call", call)?;
        let reply = lua.load("return function(text) return {err = text} end");
        redis.set("error_reply", reply.eval::<Function>()?)?;
        lua.globals().set("redis", redis)?;
        let step = lua.load(text).set_name("the script").into_function()?;
        Ok(Self { lua, step })
    }

    /// Takes one step.
    pub(crate) fn run<F: Error + Copy + 'static>(
        &self,
        key: &str,
        arguments: &[&str],
    ) -> Result<Vec<i64>, Refusal<F>> {
        let run = || -> mlua::Result<Result<Vec<i64>, String>> {
            let globals = self.lua.globals();
            globals.set("KEYS", [key])?;
            globals.set("ARGV", arguments)?;
            let answer: Table = self.step.call(MultiValue::new())?;
            if let Ok(text) = answer.get::<String>("err") {
                return Ok(Err(text));
            }
            // As a server does it: whatever is a number is cut to a whole one.
            #[expect(clippy::cast_possible_truncation, reason = "that is what servers do")]
            let cut = |number: mlua::Result<f64>| number.map(|number| number as i64);
            let numbers: mlua::Result<Vec<i64>> = answer.sequence_values().map(cut).collect();
            numbers.map(Ok)
        };
        match run() {
            Ok(result) => result.map_err(Refusal::Said),
            Err(error) => {
                let fault = error
                    .chain()
                    .find_map(|cause| cause.downcast_ref::<F>().copied());
                Err(fault.map_or(Refusal::Script, Refusal::Failed))
            }
        }
    }
}

/// The commands that the scripts use. Another one fails the step.
fn command<H: Hashes>(lua: &Lua, hashes: &H, words: &[&str]) -> mlua::Result<Value> {
    let or = mlua::Error::external;
    let answer = lua.create_table()?;
    match *words {
        ["TIME"] => {
            let micros = hashes.micros();
            answer.push(micros.wrapping_div(1_000_000).to_string())?;
            answer.push(micros.wrapping_rem(1_000_000).to_string())?;
        }
        ["HMGET", key, ref fields @ ..] => {
            for field in fields {
                match hashes.get(key, field).map_err(or)? {
                    Some(value) => answer.push(value)?,
                    None => answer.push(false)?,
                }
            }
        }
        ["HGET", key, field] => {
            return match hashes.get(key, field).map_err(or)? {
                Some(value) => Ok(Value::String(lua.create_string(value)?)),
                None => Ok(Value::Boolean(false)),
            };
        }
        ["HGETALL", key] => {
            for (field, value) in hashes.all(key).map_err(or)? {
                answer.push(field)?;
                answer.push(value)?;
            }
        }
        ["HSET", key, ref pairs @ ..] => {
            for pair in pairs.chunks_exact(2) {
                if let &[field, value] = pair {
                    hashes.set(key, field, value).map_err(or)?;
                }
            }
        }
        ["HDEL", key, field] => {
            let removed = hashes.remove(key, field).map_err(or)?;
            return Ok(Value::Number(f64::from(u8::from(removed))));
        }
        ["HLEN", key] => {
            return Ok(Value::Number(f64::from(hashes.count(key).map_err(or)?)));
        }
        ["HRANDFIELD", key, most] => {
            let most = most.parse().map_err(mlua::Error::external)?;
            for field in hashes.some(key, most).map_err(or)? {
                answer.push(field)?;
            }
        }
        ["PEXPIRE", key, millis] => {
            let millis = millis.parse().map_err(mlua::Error::external)?;
            hashes.expire(key, millis).map_err(or)?;
        }
        _ => return Err(mlua::Error::runtime("a command that is not known here")),
    }
    Ok(Value::Table(answer))
}
