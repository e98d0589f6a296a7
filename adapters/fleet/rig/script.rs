//! An engine in virtual time: the very script that Redis runs, in the same Lua, on hashes that are
//! kept here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

#[path = "../src/local/script.rs"]
mod lua;

pub(crate) use lua::Hashes;
use lua::Script;

/// What an engine says when it takes no step: the code that its error begins with.
pub(crate) type Refusal = String;

type Kept = BTreeMap<String, BTreeMap<String, String>>;

/// When each key expires, beside the keys.
const EXPIRES: &str = "";

/// Hashes in memory, and a clock that is set from outside.
#[derive(Debug, Default)]
struct Memory {
    micros: Cell<u64>,
    kept: RefCell<Kept>,
}

/// An engine with a clock that is set from outside.
#[derive(Debug)]
pub(crate) struct ScriptEngine {
    script: Script,
    memory: Rc<Memory>,
    pub(crate) steps: u64,
}

impl ScriptEngine {
    pub(crate) fn new() -> Self {
        Self::of(include_str!("../src/step.lua"))
    }

    /// An engine that is sent `script`.
    pub(crate) fn of(script: &str) -> Self {
        let memory = Rc::new(Memory::default());
        Self {
            script: Script::new(script, Rc::clone(&memory)).expect("it is Lua"),
            memory,
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
        self.memory.micros.set(micros);
        self.expire(micros);
        self.steps += 1;
        let taken = self.script.run::<Infallible>("scope", &[member, words]);
        taken.map_err(|refusal| match refusal {
            lua::Refusal::Said(text) => text,
            refusal => panic!("{refusal:?}"),
        })
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
        let mut hashes = self.memory.kept.borrow_mut();
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
        self.memory.kept.borrow_mut().clear();
    }

    /// Writes a field of the scope past the script.
    pub(crate) fn write(&self, field: &str, value: &str) {
        let mut hashes = self.memory.kept.borrow_mut();
        let scope = hashes.entry("scope".to_owned()).or_default();
        scope.insert(field.to_owned(), value.to_owned());
    }

    /// Returns what is stored: a replica's copy, say.
    pub(crate) fn stored(&self) -> Kept {
        self.memory.kept.borrow().clone()
    }

    /// Goes on with what was stored before, as a replica does that has not heard the rest.
    pub(crate) fn fall_back(&self, stored: Kept) {
        *self.memory.kept.borrow_mut() = stored;
    }
}

impl Hashes for Memory {
    type Fault = Infallible;

    fn micros(&self) -> u64 {
        self.micros.get()
    }

    fn get(&self, key: &str, field: &str) -> Result<Option<String>, Infallible> {
        let kept = self.kept.borrow();
        Ok(kept.get(key).and_then(|hash| hash.get(field)).cloned())
    }

    fn all(&self, key: &str) -> Result<Vec<(String, String)>, Infallible> {
        let kept = self.kept.borrow();
        let fields = kept.get(key).into_iter().flatten();
        Ok(fields
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect())
    }

    fn set(&self, key: &str, field: &str, value: &str) -> Result<(), Infallible> {
        let mut kept = self.kept.borrow_mut();
        let hash = kept.entry(key.to_owned()).or_default();
        hash.insert(field.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove(&self, key: &str, field: &str) -> Result<bool, Infallible> {
        let mut kept = self.kept.borrow_mut();
        let removed = kept.get_mut(key).and_then(|hash| hash.remove(field));
        Ok(removed.is_some())
    }

    fn count(&self, key: &str) -> Result<u32, Infallible> {
        let fields = self.kept.borrow().get(key).map_or(0, BTreeMap::len);
        Ok(u32::try_from(fields).unwrap_or(u32::MAX))
    }

    fn some(&self, key: &str, most: u32) -> Result<Vec<String>, Infallible> {
        // Not by chance: from where the clock says, so that each has its turn.
        let kept = self.kept.borrow();
        let fields: Vec<_> = kept.get(key).into_iter().flat_map(BTreeMap::keys).collect();
        let first = usize::try_from(self.micros.get() / 1_000).unwrap_or(0);
        let count = fields
            .len()
            .min(usize::try_from(most).unwrap_or(usize::MAX));
        Ok((0..count)
            .map(|place| fields[(first + place) % fields.len()].clone())
            .collect())
    }

    fn expire(&self, key: &str, millis: u64) -> Result<(), Infallible> {
        let end = (self.micros.get() + 1_000 * millis).to_string();
        self.set(EXPIRES, key, &end)
    }
}
