//! An engine in virtual time: the very script that Redis runs, in the same Lua, on hashes that are
//! kept here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};

/// What an engine says when it takes no step: the code that its error begins with.
pub(crate) type Refusal = String;

type Hashes = BTreeMap<String, BTreeMap<String, String>>;

/// When each key expires, beside the keys.
const EXPIRES: &str = "";

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
        Self::of(include_str!("../src/step.lua"))
    }

    /// An engine that is sent `script`.
    pub(crate) fn of(script: &str) -> Self {
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
            .load(script)
            .set_name("the script")
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
        self.expire(micros);
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

    /// Returns the rate that a new member is answered, without a trace of it.
    pub(crate) fn rate_of(&mut self, member: &str, micros: u64, words: &str) -> i64 {
        let stored = self.stored();
        let answer = self.take(micros, &format!("{member}'"), words);
        self.fall_back(stored);
        answer.expect("the step is taken")[2]
    }

    /// Drops what has expired.
    fn expire(&self, micros: u64) {
        let mut hashes = self.hashes.borrow_mut();
        let due = |end: &String| end.parse::<u64>().is_ok_and(|end| end <= micros);
        let all = hashes.get(EXPIRES).into_iter().flatten();
        let gone: Vec<_> = all
            .filter(|(_, end)| due(end))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            hashes.remove(&key);
            hashes.entry(EXPIRES.to_owned()).or_default().remove(&key);
        }
    }

    /// Forgets everything, as a restart without a disk does.
    pub(crate) fn forget(&self) {
        self.hashes.borrow_mut().clear();
    }

    /// Writes a field of the scope past the script.
    pub(crate) fn write(&self, field: &str, value: &str) {
        let mut hashes = self.hashes.borrow_mut();
        let scope = hashes.entry("scope".to_owned()).or_default();
        scope.insert(field.to_owned(), value.to_owned());
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
        ["PEXPIRE", key, millis] => {
            let millis: u64 = millis.parse().map_err(mlua::Error::external)?;
            let end = (micros + 1_000 * millis).to_string();
            let ends = hashes.entry(EXPIRES.to_owned()).or_default();
            ends.insert(key.to_owned(), end);
        }
        ["HLEN", key] => {
            let fields = hashes.get(key).map_or(0, BTreeMap::len);
            return Ok(Value::Number(f64::from(
                u32::try_from(fields).unwrap_or(u32::MAX),
            )));
        }
        ["HRANDFIELD", key, count] => {
            // Not by chance: from where the clock says, so that each has its turn.
            let fields: Vec<_> = hashes.get(key).into_iter().flatten().collect();
            let count: usize = count.parse().map_err(mlua::Error::external)?;
            let first = usize::try_from(micros / 1_000).unwrap_or(0);
            for place in 0..count.min(fields.len()) {
                answer.push(fields[(first + place) % fields.len()].0.as_str())?;
            }
        }
        ["HGET", key, field] => {
            let value = hashes.get(key).and_then(|hash| hash.get(field));
            return match value {
                Some(value) => Ok(Value::String(lua.create_string(value)?)),
                None => Ok(Value::Boolean(false)),
            };
        }
        _ => return Err(mlua::Error::runtime(format!("not emulated: {words:?}"))),
    }
    Ok(Value::Table(answer))
}
