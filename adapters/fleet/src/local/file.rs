//! The file: the engine's hashes in SQLite, and a transaction for each step.

use core::cell::{Cell, OnceCell, RefCell};
use core::time::Duration;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, ffi,
    params,
};

use super::script::{Hashes, Refusal, Script};
use super::time::{Anchor, Clocks, Reading, Time};
use crate::fault::EngineFault;
use crate::wire::Step;

/// What shows SQLite and `file(1)` what the file is: "pace".
const APPLICATION: i32 = 0x7061_6365;
/// The version of the tables. It changes where an older version of this crate could not go on.
const VERSION: i32 = 1;
const TABLES: &str = "
    CREATE TABLE field (key TEXT, name TEXT, value TEXT, PRIMARY KEY (key, name)) WITHOUT ROWID;
    CREATE TABLE expiry (key TEXT PRIMARY KEY, at INTEGER) WITHOUT ROWID;
    CREATE TABLE clock (id INTEGER PRIMARY KEY, since TEXT, zero INTEGER, last INTEGER);
";

/// How long a step waits for those of other processes. Members wait a little longer for it.
const BUSY: Duration = Duration::from_millis(200);
/// A step of another process that has the file locked for so long is given up, in microseconds:
/// that process is stopped.
const STOPPED: u64 = 1_000_000;
/// How long before trying again what SQLite does not wait for.
const SHORT: Duration = Duration::from_millis(5);
/// How many pages are written behind the file before they are copied into it: 512 KiB.
const PAGES_BEHIND: u32 = 128;
/// How often the time that the file has reached is written, and what has expired is dropped.
const TIDY: u64 = 500_000;
/// A file keeps a silent scope for no less than a day, and writes that again when an hour of it is
/// gone: in milliseconds. A scope that is to go within seconds, as that of a check, does.
const KEPT: u64 = 86_400_000;
const KEPT_WITHIN: u64 = 3_600_000;
const AS_ASKED: u64 = 10_000;

/// See the module.
pub(crate) struct File {
    path: PathBuf,
    clocks: Clocks,
    stored: Rc<Stored>,
    step: OnceCell<Script>,
    quota: OnceCell<Script>,
    held_up: Cell<Option<HeldUp>>,
}

/// Since when steps have found the file locked, and what `PRAGMA data_version` said then: another
/// process that takes a step changes that.
#[derive(Clone, Copy)]
struct HeldUp {
    since: u64,
    version: i64,
}

/// What the scripts see of it.
#[derive(Default)]
struct Stored {
    open: RefCell<Option<Open>>,
    /// The time of the step under way.
    micros: Cell<u64>,
}

struct Open {
    connection: Connection,
    /// What the path led to when it was opened.
    identity: Option<Identity>,
}

impl File {
    pub(crate) fn new(path: PathBuf, clocks: Clocks) -> Self {
        Self {
            path,
            clocks,
            stored: Rc::default(),
            step: OnceCell::new(),
            quota: OnceCell::new(),
            held_up: Cell::new(None),
        }
    }

    /// Takes one step, in a transaction: all of it or nothing.
    pub(crate) fn take(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
    ) -> Result<Vec<i64>, EngineFault> {
        let script = self.script(step)?;
        let take = || {
            self.open()?;
            self.step(script, key, [member, words, "file"])
        };
        let mut result = take();
        if result != Err(EngineFault::TimedOut) {
            self.held_up.set(None);
        } else if self.is_held_up() && self.leave_behind().is_ok() {
            result = take();
        }
        match result {
            Ok(_) | Err(EngineFault::TimedOut | EngineFault::Broken | EngineFault::ClockJumped) => {
            }
            Err(fault) => {
                let was = self.stored.open.take().and_then(|open| open.identity);
                if fault == EngineFault::Corrupt && was.is_some() {
                    let _kept = self.put_aside(was, ".damaged", empty);
                }
            }
        }
        result
    }

    fn script(&self, step: Step) -> Result<&Script, EngineFault> {
        let (kept, text) = match step {
            Step::Send => (&self.step, include_str!("../step.lua")),
            Step::Quota => (&self.quota, include_str!("../quota.lua")),
        };
        if let Some(script) = kept.get() {
            return Ok(script);
        }
        let script = Script::new(text, Rc::clone(&self.stored));
        let script = script.map_err(|_| EngineFault::Other)?;
        Ok(kept.get_or_init(|| script))
    }

    /// Opens the file, unless it is open and the path still leads to it.
    pub(crate) fn open(&self) -> Result<(), EngineFault> {
        let found = identity(&self.path);
        let mut open = self.stored.open.borrow_mut();
        if open.as_ref().is_some_and(|open| open.identity == found) {
            return Ok(());
        }
        *open = None;
        // What was written behind a file tells that the file was a store.
        if found.is_some_and(|found| found.is_empty) && beside(&self.path, "-wal").exists() {
            let _kept = self.put_aside(found, ".damaged", empty);
        }
        let _turn = turn(&self.path, Turn::Open)?;
        let connection = connect(&self.path).map_err(|error| self.fault(&error))?;
        let usable = prepare(&connection);
        usable.map_err(|error| self.unusable(error))?;
        *open = Some(Open {
            connection,
            identity: identity(&self.path),
        });
        Ok(())
    }

    /// Returns whether steps have found the file locked for so long that the process that took the
    /// lock is stopped.
    fn is_held_up(&self) -> bool {
        let now = (self.clocks)().micros;
        let version = self.stored.with(|connection| {
            connection.pragma_query_value(None, "data_version", |row| row.get(0))
        });
        let Ok(version) = version else {
            return false;
        };
        let first = HeldUp {
            since: now,
            version,
        };
        let held_up = self.held_up.get();
        let held_up = held_up.filter(|held_up| held_up.version == version);
        let held_up = held_up.unwrap_or(first);
        self.held_up.set(Some(held_up));
        now.saturating_sub(held_up.since) >= STOPPED
    }

    /// Goes on in a copy of the file, without the step that is not done. The process that is
    /// stopped in it finds the copy when it goes on.
    fn leave_behind(&self) -> Result<(), EngineFault> {
        if !cfg!(target_os = "linux") {
            return Err(EngineFault::TimedOut); // no turn, and no other name for an open file
        }
        let open = self
            .stored
            .open
            .borrow()
            .as_ref()
            .and_then(|open| open.identity);
        self.put_aside(open, ".stopped", Self::copy)?;
        *self.stored.open.borrow_mut() = None;
        self.held_up.set(None);
        Ok(())
    }

    /// Writes what the last step left.
    fn copy(&self, to: &Path) -> Result<(), EngineFault> {
        let to = to.to_str().ok_or(EngineFault::Other)?;
        let copied = self
            .stored
            .with(|connection| connection.execute("VACUUM INTO ?1", [to]));
        copied
            .map(drop)
            .map_err(|Failed(code, extended)| self.of_codes(code, extended))
    }

    /// Renames a store, with the files beside it, and leaves a `new` file of the same rights in its
    /// place. Another process may have done so before.
    fn put_aside(
        &self,
        store: Option<Identity>,
        suffix: &str,
        new: fn(&Self, &Path) -> Result<(), EngineFault>,
    ) -> Result<(), EngineFault> {
        let of = |_| EngineFault::Corrupt;
        let _turn = turn(&self.path, Turn::PutAside)?;
        if identity(&self.path) != store {
            return Ok(());
        }
        let rights = std::fs::metadata(&self.path).map_err(of)?.permissions();
        let made = beside(&self.path, ".new");
        let _left = std::fs::remove_file(&made); // by a process that was killed here
        new(self, &made)?;
        std::fs::set_permissions(&made, rights).map_err(of)?;
        let aside = beside(&self.path, suffix);
        for suffix in ["-shm", "-wal", ""] {
            let (from, to) = (beside(&self.path, suffix), beside(&aside, suffix));
            let _none = std::fs::remove_file(&to);
            match std::fs::rename(from, to) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(of(error)),
                _ => {}
            }
        }
        std::fs::rename(made, &self.path).map_err(of)
    }

    fn step(
        &self,
        script: &Script,
        key: &str,
        arguments: [&str; 3],
    ) -> Result<Vec<i64>, EngineFault> {
        let of = |error: rusqlite::Error| self.fault(&error);
        let open = self.stored.open.borrow();
        let Some(Open { connection, .. }) = &*open else {
            return Err(EngineFault::Unreachable);
        };
        let behavior = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(connection, behavior).map_err(of)?;
        // Read under the lock: the time of a later step is no earlier.
        let reading = (self.clocks)();
        let Some(now) = time(&transaction, &reading).map_err(of)? else {
            transaction.commit().map_err(of)?;
            return Err(EngineFault::ClockJumped);
        };
        self.stored.micros.set(now);
        let numbers = script.run(key, &arguments);
        let numbers = numbers.map_err(|refusal| match refusal {
            Refusal::Said(text) => EngineFault::of_code(text.split(' ').next().unwrap_or("")),
            Refusal::Failed(Failed(code, extended)) => self.of_codes(code, extended),
            Refusal::Script => EngineFault::Other,
        })?;
        transaction.commit().map_err(of)?;
        Ok(numbers)
    }

    fn unusable(&self, why: Unusable) -> EngineFault {
        match why {
            Unusable::Failed(error) => self.fault(&error),
            Unusable::OtherVersion => EngineFault::OtherVersion,
            Unusable::Foreign => EngineFault::Corrupt,
            Unusable::ReadOnly => EngineFault::ReadOnly,
        }
    }

    fn fault(&self, error: &rusqlite::Error) -> EngineFault {
        let Failed(code, extended) = Failed::of(error);
        self.of_codes(code, extended)
    }

    fn of_codes(&self, code: ErrorCode, extended: i32) -> EngineFault {
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => EngineFault::TimedOut,
            ErrorCode::DiskFull => EngineFault::DiskFull,
            // The memory that processes share is a file beside it.
            ErrorCode::SystemIoFailure if extended == ffi::SQLITE_IOERR_SHMSIZE => {
                EngineFault::DiskFull
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch => {
                EngineFault::Corrupt
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => EngineFault::ReadOnly,
            ErrorCode::CannotOpen if self.has_folder() => EngineFault::ReadOnly,
            ErrorCode::CannotOpen | ErrorCode::SystemIoFailure => EngineFault::Unreachable,
            ErrorCode::OutOfMemory => EngineFault::OutOfMemory,
            // Every statement is good, so that the tables are not those of this crate.
            ErrorCode::Unknown => EngineFault::Broken,
            _ => EngineFault::Other,
        }
    }

    fn has_folder(&self) -> bool {
        let folder = self.path.parent();
        let here = folder.is_none_or(|folder| folder.as_os_str().is_empty());
        !self.path.is_dir() && (here || folder.is_some_and(Path::is_dir))
    }
}

/// What SQLite says of an error: its code, and the longer one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed(ErrorCode, i32);

impl core::fmt::Display for Failed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the file: {:?}", self.0)
    }
}

impl core::error::Error for Failed {}

impl Failed {
    fn of(error: &rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(error, _) => Self(error.code, error.extended_code),
            // A table or a value that this crate did not write.
            _ => Self(ErrorCode::TypeMismatch, 0),
        }
    }
}

fn empty(_store: &File, to: &Path) -> Result<(), EngineFault> {
    let made = std::fs::File::create_new(to);
    made.map(drop).map_err(|_| EngineFault::Corrupt)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // Leaving is cheap: what is written behind the file stays there for the next process.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A power cut may undo the last steps, and damages nothing.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", PAGES_BEHIND)?;
    connection.pragma_update(None, "journal_size_limit", PAGES_BEHIND * 4_096)?;
    Ok(connection)
}

enum Unusable {
    Failed(rusqlite::Error),
    OtherVersion,
    Foreign,
    ReadOnly,
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

/// Makes the tables in an empty file. Refuses one that has others, without a change to it.
fn prepare(connection: &Connection) -> Result<(), Unusable> {
    if is_prepared(connection)? {
        // SQLite opens what it may not write, and says so with the first step.
        return if connection.is_readonly("main")? {
            Err(Unusable::ReadOnly)
        } else {
            Ok(())
        };
    }
    // Two processes that do this at once do not wait for each other here.
    for left in (0..40).rev() {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Ok(()) => break,
            Err(error) if left > 0 && is_busy(&error) => std::thread::sleep(SHORT),
            Err(error) => return Err(error.into()),
        }
    }
    let behavior = TransactionBehavior::Immediate;
    let transaction = Transaction::new_unchecked(connection, behavior)?;
    if !is_prepared(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Returns `false` for an empty file.
fn is_prepared(connection: &Connection) -> Result<bool, Unusable> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    match (application, version) {
        (APPLICATION, VERSION) => Ok(true),
        (APPLICATION, _) => Err(Unusable::OtherVersion),
        (0, 0) => {
            let tables = "SELECT count(*) FROM sqlite_master";
            match connection.query_row(tables, [], |row| row.get(0))? {
                0_u32 => Ok(false),
                _ => Err(Unusable::Foreign),
            }
        }
        _ => Err(Unusable::Foreign),
    }
}

/// Returns the file's time, or nothing if the clock went back: the file's time goes on from there.
fn time(connection: &Connection, reading: &Reading) -> rusqlite::Result<Option<u64>> {
    let mut select = connection.prepare_cached("SELECT since, zero, last FROM clock")?;
    let anchor = select.query_row([], |row| {
        Ok(Anchor {
            since: row.get(0)?,
            offset: row.get(1)?,
            last: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        })
    });
    let (anchor, now) = match anchor.optional()? {
        None => {
            let first = Anchor::new(reading);
            (first.clone(), Some(first.last))
        }
        Some(anchor) => match anchor.time(reading) {
            Time::Is(now) if now.saturating_sub(anchor.last) < TIDY => return Ok(Some(now)),
            Time::Is(now) => (
                Anchor {
                    last: now,
                    ..anchor
                },
                Some(now),
            ),
            Time::Restarted(anchor) => {
                let now = anchor.last;
                (anchor, Some(now))
            }
            Time::Jumped(anchor) => (anchor, None),
        },
    };
    let last = signed(anchor.last);
    connection
        .prepare_cached("INSERT OR REPLACE INTO clock VALUES (0, ?1, ?2, ?3)")?
        .execute(params![anchor.since, anchor.offset, last])?;
    let expired = "DELETE FROM field WHERE key IN (SELECT key FROM expiry WHERE at <= ?1)";
    connection.prepare_cached(expired)?.execute([last])?;
    let expired = "DELETE FROM expiry WHERE at <= ?1";
    connection.prepare_cached(expired)?.execute([last])?;
    Ok(now)
}

/// SQLite's numbers have a sign.
fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// What a path leads to. An empty file is no store.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    file: (u64, u64),
    is_empty: bool,
}

fn identity(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let file = {
        use std::os::unix::fs::MetadataExt;

        (found.dev(), found.ino())
    };
    #[cfg(not(unix))]
    let file = (0, 0);
    Some(Identity {
        file,
        is_empty: found.len() == 0,
    })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What a process does with a path. Any number of processes open it at once, while none puts it
/// aside: half of the renames seen would mix an old file with a new one.
#[derive(Clone, Copy)]
enum Turn {
    Open,
    PutAside,
}

/// Waits for its turn in the folder of `path`, which lasts until the returned file is dropped.
#[cfg(target_os = "linux")]
fn turn(path: &Path, turn: Turn) -> Result<Option<std::fs::File>, EngineFault> {
    use rustix::fs::{FlockOperation, flock};

    let lock = match turn {
        Turn::Open => FlockOperation::NonBlockingLockShared,
        Turn::PutAside => FlockOperation::NonBlockingLockExclusive,
    };
    let folder = path.parent().filter(|of| !of.as_os_str().is_empty());
    let Ok(folder) = std::fs::File::open(folder.unwrap_or(Path::new("."))) else {
        // A user that may not read the folder goes on without a turn.
        return Ok(None);
    };
    for _ in 0..40 {
        match flock(&folder, lock) {
            Ok(()) => return Ok(Some(folder)),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(SHORT),
            Err(_) => return Ok(None),
        }
    }
    Err(EngineFault::TimedOut)
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
fn turn(_path: &Path, _turn: Turn) -> Result<(), EngineFault> {
    Ok(())
}

impl Stored {
    /// Does something with the connection of the step under way.
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Failed> {
        let open = self.open.borrow();
        let Some(Open { connection, .. }) = &*open else {
            return Err(Failed(ErrorCode::CannotOpen, 0));
        };
        work(connection).map_err(|error| Failed::of(&error))
    }
}

impl Hashes for Stored {
    type Fault = Failed;

    fn micros(&self) -> u64 {
        self.micros.get()
    }

    fn get(&self, key: &str, field: &str) -> Result<Option<String>, Failed> {
        self.with(|connection| {
            connection
                .prepare_cached("SELECT value FROM field WHERE key = ?1 AND name = ?2")?
                .query_row([key, field], |row| row.get(0))
                .optional()
        })
    }

    fn all(&self, key: &str) -> Result<Vec<(String, String)>, Failed> {
        self.with(|connection| {
            connection
                .prepare_cached("SELECT name, value FROM field WHERE key = ?1")?
                .query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    fn set(&self, key: &str, field: &str, value: &str) -> Result<(), Failed> {
        self.with(|connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO field VALUES (?1, ?2, ?3)")?
                .execute([key, field, value])
                .map(drop)
        })
    }

    fn remove(&self, key: &str, field: &str) -> Result<bool, Failed> {
        self.with(|connection| {
            let removed = connection
                .prepare_cached("DELETE FROM field WHERE key = ?1 AND name = ?2")?
                .execute([key, field])?;
            Ok(removed > 0)
        })
    }

    fn count(&self, key: &str) -> Result<u32, Failed> {
        self.with(|connection| {
            connection
                .prepare_cached("SELECT count(*) FROM field WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
        })
    }

    fn some(&self, key: &str, most: u32) -> Result<Vec<String>, Failed> {
        self.with(|connection| {
            connection
                .prepare_cached("SELECT name FROM field WHERE key = ?1 ORDER BY random() LIMIT ?2")?
                .query_map(params![key, most], |row| row.get(0))?
                .collect()
        })
    }

    fn expire(&self, key: &str, millis: u64) -> Result<(), Failed> {
        let (kept, within) = if millis > AS_ASKED {
            (millis.max(KEPT), KEPT_WITHIN)
        } else {
            (millis, 0)
        };
        let at = signed(self.micros().saturating_add(kept.saturating_mul(1_000)));
        let stands = at.saturating_sub(signed(within.saturating_mul(1_000)));
        self.with(|connection| {
            let mut select = connection.prepare_cached("SELECT at FROM expiry WHERE key = ?1")?;
            let known: Option<i64> = select.query_row([key], |row| row.get(0)).optional()?;
            if known.is_some_and(|known| (stands..=at).contains(&known)) {
                return Ok(());
            }
            connection
                .prepare_cached("INSERT OR REPLACE INTO expiry VALUES (?1, ?2)")?
                .execute(params![key, at])
                .map(drop)
        })
    }
}

#[cfg(test)]
#[path = "file/tests.rs"]
mod tests;
