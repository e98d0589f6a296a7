//! An engine in virtual time: the very script that Redis runs, in the same Lua, on hashes that are kept here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};

/// What an engine says when it takes no step: the code that its error begins with.
pub(crate) type Refusal = String;

type Hashes = BTreeMap<String, BTreeMap<String, String>>;

/// An engine with a clock that is set from outside.
#[derive(Debug)]
pub(crate) struct ScriptEngine {
    lua: Lua,
    step: Function,
    micros: Rc<Cell<u64>>,
    hashes: Rc<RefCell<Hashes>>,
    pub(crate) steps: u64,
}

impl ScriptEngine {
    pub(crate) fn new() -> Self {
        let lua = Lua::new();
        let (micros, hashes) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Hashes::new())));
        let redis = lua.create_table().expect("there is memory");
        let (time, kept) = (Rc::clone(&micros), Rc::clone(&hashes));
        let call = move |lua: &Lua, words: Variadic<String>| {
            command(lua, time.get(), &mut kept.borrow_mut(), &words)
        };
        let call = lua.create_function(call).expect("it is one");
        redis.set("call", call).expect("a table takes it");
        let reply = lua
            .load("return function(text) return {err = text} end")
            .eval::<Function>();
        redis
            .set("error_reply", reply.expect("it is one"))
            .expect("a table takes it");
        lua.globals().set("redis", redis).expect("a table takes it");
        let step = lua
            .load(include_str!("../src/step.lua"))
            .set_name("step.lua")
            .into_function()
            .expect("it is Lua");
        Self {
            lua,
            step,
            micros,
            hashes,
            steps: 0,
        }
    }

    /// Takes one step at `micros` of the engine's clock.
    pub(crate) fn take(
        &mut self,
        micros: u64,
        member: &str,
        words: &str,
    ) -> Result<Vec<i64>, Refusal> {
        self.micros.set(micros);
        self.steps += 1;
        let globals = self.lua.globals();
        globals
            .set("KEYS", vec!["scope"])
            .expect("a table takes it");
        globals
            .set("ARGV", vec![member, words])
            .expect("a table takes it");
        let answer: Table = self.step.call(MultiValue::new()).expect("the script runs");
        if let Ok(text) = answer.get::<String>("err") {
            return Err(text);
        }
        // As Redis does it: whatever is a number is cut to a whole one.
        let numbers = answer.sequence_values::<f64>();
        #[expect(clippy::cast_possible_truncation, reason = "that is what Redis does")]
        Ok(numbers.map(|n| n.expect("a number") as i64).collect())
    }

    /// Forgets everything, as a restart without a disk does.
    pub(crate) fn forget(&self) {
        self.hashes.borrow_mut().clear();
    }

    /// Returns what is stored: a replica's copy, say.
    pub(crate) fn stored(&self) -> Hashes {
        self.hashes.borrow().clone()
    }

    /// Goes on with what was stored before, as a replica does that has not heard the rest.
    pub(crate) fn fall_back(&self, stored: Hashes) {
        *self.hashes.borrow_mut() = stored;
    }
}

/// The commands that the script uses. One that it should not use fails the step.
fn command(lua: &Lua, micros: u64, hashes: &mut Hashes, words: &[String]) -> mlua::Result<Value> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = lua.create_table()?;
    match *words.as_slice() {
        ["TIME"] => {
            answer.push((micros / 1_000_000).to_string())?;
            answer.push((micros % 1_000_000).to_string())?;
        }
        ["HMGET", key, ref fields @ ..] => {
            let hash = hashes.get(key);
            for field in fields {
                match hash.and_then(|hash| hash.get(*field)) {
                    Some(value) => answer.push(value.as_str())?,
                    None => answer.push(false)?,
                }
            }
        }
        ["HGETALL", key] => {
            for (field, value) in hashes.get(key).into_iter().flatten() {
                answer.push(field.as_str())?;
                answer.push(value.as_str())?;
            }
        }
        ["HDEL", key, field] => {
            let removed = hashes.get_mut(key).and_then(|hash| hash.remove(field));
            return Ok(Value::Integer(i64::from(removed.is_some())));
        }
        ["HSET", key, ref pairs @ ..] => {
            let hash = hashes.entry(key.to_owned()).or_default();
            for pair in pairs.chunks_exact(2) {
                hash.insert(pair[0].to_owned(), pair[1].to_owned());
            }
        }
        ["PEXPIRE", ..] => {}
        _ => return Err(mlua::Error::runtime(format!("not emulated: {words:?}"))),
    }
    Ok(Value::Table(answer))
}
