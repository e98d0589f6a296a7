use super::*;

const SECOND: u64 = 1_000_000;

/// A file of one test, and the clocks of its machine.
struct Bench {
    folder: PathBuf,
    reading: Rc<RefCell<Reading>>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    fn new(test: &str) -> Self {
        let name = format!("paceline-file-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let reading = Reading {
            since: "a".to_owned(),
            micros: 100 * SECOND,
            wall: 5_000 * SECOND,
        };
        Self {
            folder,
            reading: Rc::new(RefCell::new(reading)),
        }
    }

    /// Returns the file as one process has it.
    fn file(&self) -> File {
        let reading = Rc::clone(&self.reading);
        let clocks = Box::new(move || reading.borrow().clone());
        File::new(self.folder.join("limits"), clocks)
    }

    fn pass(&self, micros: u64) {
        let mut reading = self.reading.borrow_mut();
        reading.micros = reading.micros.wrapping_add(micros);
        reading.wall = reading.wall.wrapping_add(micros);
    }
}

/// One step of a member that may send 1,000/s with others.
fn ask(file: &File, member: &str, seq: u32, rest: &str) -> Result<Vec<i64>, EngineFault> {
    let (leave, want, told) = match rest {
        "leave" => (1, 0, "0 0 0 0 0"),
        // It sent a token at once, and was asked to come back in 30 s.
        "paused" => (0, 0, "1 1 0 1000 30000000"),
        _ => (0, 5, "0 0 0 0 0"),
    };
    let words = format!(
        "{seq} {leave} {want} 0 0 5.000 {told} 1000 1000 1 100000 200000 2000000 600000 1 0"
    );
    file.take(Step::Send, "scope", member, &words)
}

fn granted(file: &File, member: &str, seq: u32) -> i64 {
    ask(file, member, seq, "").expect("the step is taken")[0]
}

#[test]
fn what_one_process_saved_up_another_one_gets_at_once() {
    let bench = Bench::new("saved");
    assert_eq!(granted(&bench.file(), "a", 1), 0);
    bench.pass(SECOND);
    // No connection is left of the first one.
    assert_eq!(granted(&bench.file(), "b", 1), 5);
    // After hours without a step too: a file is never away.
    bench.pass(3 * 3_600 * SECOND);
    assert_eq!(granted(&bench.file(), "c", 1), 5);
}

#[test]
fn a_pause_outlives_the_process_and_the_start_of_the_machine() {
    let bench = Bench::new("pause");
    let first = bench.file();
    assert_eq!(granted(&first, "a", 1), 0);
    bench.pass(SECOND / 10);
    assert_eq!(granted(&first, "a", 2), 5);
    ask(&first, "a", 3, "paused").expect("the step is taken");
    drop(first);
    bench.pass(10 * SECOND);
    assert_eq!(granted(&bench.file(), "b", 1), 0);
    // The machine starts again, and its clock has lost the time.
    *bench.reading.borrow_mut() = Reading {
        since: "b".to_owned(),
        micros: 0,
        wall: 0,
    };
    assert_eq!(granted(&bench.file(), "c", 1), 0);
    bench.pass(19 * SECOND);
    assert_eq!(granted(&bench.file(), "d", 1), 0);
    bench.pass(2 * SECOND);
    assert!(granted(&bench.file(), "e", 1) > 0);
}

/// A plan that is spent for two days, told by one process.
#[test]
fn a_spent_plan_outlives_all_processes_until_its_reset() {
    let bench = Bench::new("spent");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    bench.pass(SECOND);
    let two_days = 2 * 86_400 * SECOND;
    let words = format!(
        "2 0 0 0 0 5.000 0 0 0 0 0 1000 1000 1 100000 200000 2000000 600000 1 0 0 0 {two_days}"
    );
    let told = file.take(Step::Send, "scope", "a", &words);
    told.expect("the step is taken");
    drop(file);
    bench.pass(two_days - SECOND);
    // A new process finds the scope, and is answered how long it is shut.
    let answer = ask(&bench.file(), "b", 1, "").expect("the step is taken");
    assert_eq!(
        (answer[0], answer[10]),
        (0, i64::try_from(SECOND).unwrap_or(0) + 1)
    );
    bench.pass(2 * SECOND);
    assert_eq!(granted(&bench.file(), "c", 1), 5);
}

#[test]
fn a_system_clock_that_is_set_ends_no_pause() {
    let bench = Bench::new("set");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    bench.pass(SECOND / 10);
    assert_eq!(granted(&file, "a", 2), 5);
    ask(&file, "a", 3, "paused").expect("the step is taken");
    bench.reading.borrow_mut().wall = 9_000 * SECOND;
    assert_eq!(granted(&bench.file(), "b", 1), 0);
}

#[test]
fn a_clock_that_goes_back_is_one_fault_and_the_time_goes_on() {
    let bench = Bench::new("back");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    bench.pass(SECOND);
    assert_eq!(granted(&file, "a", 2), 5);
    bench.reading.borrow_mut().micros -= 50 * SECOND;
    assert_eq!(ask(&file, "a", 3, ""), Err(EngineFault::ClockJumped));
    assert_eq!(granted(&file, "a", 3), 5);
    bench.pass(SECOND);
    assert_eq!(granted(&file, "a", 4), 5);
}

#[test]
fn a_refused_step_changes_nothing() {
    let bench = Bench::new("refused");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    let other = Connection::open(bench.folder.join("limits")).expect("SQLite's");
    // The step drops the first, which is silent, before it comes to the second.
    let wrong = "INSERT INTO field VALUES
        ('scope', 'm0', '0 0 0 0 0 0 1 500000 0 0 1 0 0'), ('scope', 'mb', 'not numbers')";
    other.execute_batch(wrong).expect("a row");
    let rows = || -> Vec<(String, String)> {
        let mut all = other
            .prepare("SELECT name, value FROM field")
            .expect("a table");
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows")
            .map(|row| row.expect("two texts"))
            .collect()
    };
    let before = rows();
    bench.pass(SECOND);
    assert_eq!(ask(&file, "a", 2, ""), Err(EngineFault::Broken));
    assert_eq!(rows(), before);
    other
        .execute_batch("DELETE FROM field WHERE name = 'mb'")
        .expect("a row");
    assert_eq!(granted(&file, "a", 2), 5);
}

#[test]
fn a_file_that_was_deleted_is_left_for_the_new_one() {
    let bench = Bench::new("deleted");
    let (one, other) = (bench.file(), bench.file());
    let joined = |file: &File, member, seq| ask(file, member, seq, "").expect("it is taken")[4];
    assert_eq!([joined(&one, "a", 1), joined(&one, "a", 2)], [1, 0]);
    for name in ["limits", "limits-wal", "limits-shm"] {
        std::fs::remove_file(bench.folder.join(name)).expect("it is there");
    }
    assert_eq!(joined(&other, "b", 1), 1);
    // Both are in the new one.
    assert_eq!(joined(&one, "a", 3), 1);
    assert_eq!(other.stored.count("scope").expect("it is open"), 3);
}

#[test]
fn a_value_that_is_no_text_is_a_fault() {
    let bench = Bench::new("blob");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    let other = Connection::open(bench.folder.join("limits")).expect("SQLite's");
    let blob = "UPDATE field SET value = x'ff00' WHERE name = 's'";
    other.execute_batch(blob).expect("a row");
    assert_eq!(ask(&file, "a", 2, ""), Err(EngineFault::Corrupt));
}

#[test]
fn a_table_that_is_gone_is_what_another_program_did() {
    let bench = Bench::new("table");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    let other = Connection::open(bench.folder.join("limits")).expect("SQLite's");
    other.execute_batch("DROP TABLE field").expect("a table");
    assert_eq!(ask(&file, "a", 2, ""), Err(EngineFault::Broken));
}

#[test]
fn a_step_that_finds_no_room_is_taken_once_there_is_some() {
    let bench = Bench::new("room");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    let limit = |pages: u32| {
        let open = file.stored.open.borrow();
        let connection = &open.as_ref().expect("it is open").connection;
        let set =
            connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0));
        assert!(set.is_ok_and(|set: u32| set >= 4));
    };
    limit(4);
    let mut taken = 0;
    let fault = loop {
        taken += 1;
        match ask(&file, &format!("{taken:016x}"), 1, "") {
            Ok(_) => assert!(taken < 1_000),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault, EngineFault::DiskFull);
    // It was opened again, as after each fault of the file, and without the limit.
    assert!(ask(&file, &format!("{taken:016x}"), 1, "").is_ok());
}

#[test]
fn a_silent_scope_is_dropped_after_a_day() {
    let bench = Bench::new("day");
    let file = bench.file();
    assert_eq!(granted(&file, "a", 1), 0);
    let fields = |key: &str| file.stored.count(key).expect("it is open");
    let step = |key: &str, kept: u32| {
        let words = format!("1 1 0 0 0 0 0 0 0 0 0 1 1 1 100000 200000 2000000 {kept} 1 0");
        let taken = file.take(Step::Send, key, "x", &words);
        taken.expect("the step is taken");
    };
    bench.pass(23 * 3_600 * SECOND);
    step("other", 600_000);
    assert_eq!(fields("scope"), 2);
    bench.pass(3_600 * SECOND);
    step("other", 600_000);
    assert_eq!((fields("scope"), fields("other")), (0, 1));
    // A check is not to be kept.
    step("check", 1_000);
    assert_eq!(fields("check"), 1);
    bench.pass(SECOND);
    step("other", 600_000);
    assert_eq!((fields("check"), fields("other")), (0, 1));
}

#[test]
fn a_member_that_leaves_takes_its_row_along() {
    let bench = Bench::new("row");
    let file = bench.file();
    for member in 0..50 {
        let name = member.to_string();
        granted(&file, &name, 1);
        ask(&file, &name, 2, "leave").expect("the step is taken");
    }
    assert_eq!(file.stored.count("scope").expect("it is open"), 1);
}

#[test]
fn two_versions_of_the_script_share_a_file() {
    let bench = Bench::new("scripts");
    let (old, new) = (bench.file(), bench.file());
    let text = include_str!("../../step.lua");
    let appended = [
        ("'rise', 'shut'}", "'rise', 'shut', 'later'}"),
        ("'start', 'knock'}", "'start', 'knock', 'later'}"),
        ("shut = 0}", "shut = 0, later = 5}"),
        ("start = 0, knock = 0}", "start = 0, knock = 0, later = 5}"),
    ];
    let later = appended
        .into_iter()
        .fold(text.to_owned(), |script, (from, to)| {
            assert!(script.contains(from), "{from}");
            script.replace(from, to)
        });
    let script = Script::new(&later, Rc::clone(&new.stored)).expect("it is Lua");
    new.step.set(script).expect("it is the first one");
    let (mut of_old, mut of_new) = (0, 0);
    for seq in 1..=100 {
        bench.pass(SECOND / 50);
        of_old += granted(&old, "a", seq);
        of_new += granted(&new, "b", seq);
    }
    assert_eq!(of_old, of_new);
    assert!(of_old >= 390, "{of_old} of 500");
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_is_stopped_in_a_step_holds_the_others_up_for_a_second() {
    let bench = Bench::new("stopped");
    let [stopped, first, second] = [(); 3].map(|()| bench.file());
    assert_eq!(granted(&first, "a", 1), 0);
    assert_eq!(granted(&second, "b", 1), 0);
    stopped.open().expect("it is there");
    let open = stopped.stored.open.borrow();
    let connection = &open.as_ref().expect("it is open").connection;
    let behavior = TransactionBehavior::Immediate;
    let step = Transaction::new_unchecked(connection, behavior).expect("the lock is free");
    let aside = beside(&first.path, ".stopped");
    for pass in [SECOND, SECOND - 1] {
        bench.pass(pass);
        assert_eq!(ask(&first, "a", 2, ""), Err(EngineFault::TimedOut));
        assert!(!aside.exists());
    }
    // What was there before is there: the members, and what was saved up.
    bench.pass(1);
    assert_eq!(granted(&first, "a", 2), 5);
    assert_eq!(granted(&second, "b", 2), 5);
    assert_eq!(ask(&second, "b", 3, "").expect("the step is taken")[3], 2);
    assert!(aside.exists());
    // It goes on, and what it wrote is nowhere.
    step.execute("INSERT INTO field VALUES ('scope', 'mc', 'x')", [])
        .expect("it has the lock");
    step.commit()
        .expect("its file is there, under another name");
    drop(open);
    assert_eq!(ask(&stopped, "d", 1, "").expect("the step is taken")[3], 3);
}

#[test]
fn a_file_whose_steps_are_taken_by_others_holds_nobody_up_for_good() {
    let bench = Bench::new("busy");
    let [busy, first] = [(); 2].map(|()| bench.file());
    assert_eq!(granted(&first, "a", 1), 0);
    for seq in 1..=3 {
        assert!(granted(&busy, "b", seq) >= 0);
        let open = busy.stored.open.borrow();
        let connection = &open.as_ref().expect("it is open").connection;
        let behavior = TransactionBehavior::Immediate;
        let _step = Transaction::new_unchecked(connection, behavior).expect("the lock is free");
        bench.pass(SECOND);
        assert_eq!(ask(&first, "a", 2, ""), Err(EngineFault::TimedOut));
    }
    assert!(!beside(&first.path, ".stopped").exists());
}
