//! The step at the engine, called as a member's task calls it, in virtual time.

use crate::rig::script::{Refusal, ScriptEngine};

/// One step's arguments, in the order of the script.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) member: &'static str,
    pub(crate) seq: u64,
    pub(crate) leave: u8,
    pub(crate) want: u64,
    pub(crate) held: u64,
    pub(crate) back: u64,
    pub(crate) demand: u64,
    pub(crate) spent: u64,
    pub(crate) throttled: u64,
    pub(crate) age: u64,
    pub(crate) trip: u64,
    pub(crate) pause: u64,
    pub(crate) ceiling: u64,
    pub(crate) lease: u64,
    pub(crate) weight: u64,
    /// In tokens per second.
    pub(crate) floor: &'static str,
}

pub(crate) const ASK: Step = Step {
    member: "a",
    seq: 1,
    leave: 0,
    want: 1_000,
    held: 0,
    back: 0,
    demand: 5_000,
    spent: 0,
    throttled: 0,
    age: 0,
    trip: 1_000,
    pause: 0,
    ceiling: 1_000,
    lease: 200_000,
    weight: 1,
    floor: "1",
};

impl Step {
    /// The script's arguments, after the member.
    pub(crate) fn words(&self) -> String {
        let Self {
            seq,
            leave,
            want,
            held,
            back,
            demand,
            spent,
            throttled,
            age,
            trip,
            pause,
            ceiling,
            lease,
            weight,
            floor,
            ..
        } = self;
        let burst = lease / 2;
        // Ceiling and initial rate; floor; absent after 2 s; kept for 10 min.
        format!(
            "{seq} {leave} {want} {held} {back} {demand} {spent} {throttled} {age} {trip} {pause} {ceiling} {ceiling} \
             {floor} {burst} {lease} 2000000 600000 {weight}"
        )
    }

    fn take(&self, bench: &mut Bench) -> Result<Vec<i64>, Refusal> {
        bench.engine.take(bench.micros, self.member, &self.words())
    }

    fn granted(&self, bench: &mut Bench) -> i64 {
        self.take(bench).expect("the step is taken")[0]
    }
}

/// A script in virtual time.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) engine: ScriptEngine,
    pub(crate) micros: u64,
}

impl Bench {
    pub(crate) fn of(engine: ScriptEngine) -> Self {
        let micros = 1_000_000_000;
        Self { engine, micros }
    }

    fn new() -> Self {
        Self::of(ScriptEngine::new())
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.micros += 1_000 * millis;
    }

    /// Lets 64 members that send want everything for a second.
    fn crowd(&mut self) {
        for seq in 1..=100 {
            self.pass(10);
            for member in 0..64 {
                let spent = 1;
                let words = Step { seq, spent, ..ASK }.words();
                let name = format!("n{member}");
                self.engine.take(self.micros, &name, &words).unwrap();
            }
        }
    }
}

#[test]
fn a_scope_that_is_forgotten_starts_empty() {
    let mut engine = Bench::new();
    assert_eq!(ASK.granted(&mut engine), 0);
}

#[test]
fn a_lease_asked_for_again_is_the_same_lease_and_is_paid_once() {
    let mut engine = Bench::new();
    assert_eq!(ASK.granted(&mut engine), 0);
    engine.pass(50);
    let second = Step { seq: 2, ..ASK };
    assert_eq!(second.granted(&mut engine), 50);
    let state = engine.engine.stored();
    engine.pass(50);
    assert_eq!(second.granted(&mut engine), 50);
    assert_eq!(engine.engine.stored(), state);
    let refused = ASK.take(&mut engine).unwrap_err();
    assert_eq!(refused, "STALE the lease is not the last one");
}

#[test]
fn what_is_granted_is_never_more_than_the_rate() {
    let mut engine = Bench::new();
    let mut granted = 0;
    for seq in 1..=2_000 {
        engine.pass(1);
        let member = ["a", "b", "c"][usize::try_from(seq % 3).unwrap()];
        granted += Step { member, seq, ..ASK }.granted(&mut engine);
    }
    // All that were minted since the first.
    assert_eq!(granted, 1_999);
}

#[test]
fn no_more_is_kept_than_the_burst_and_a_lease() {
    let mut engine = Bench::new();
    assert_eq!(ASK.granted(&mut engine), 0);
    engine.pass(800);
    assert_eq!(Step { seq: 2, ..ASK }.granted(&mut engine), 100);
}

#[test]
fn what_comes_back_can_be_granted_once_more() {
    let mut engine = Bench::new();
    let slow = Step {
        ceiling: 100,
        ..ASK
    };
    assert_eq!(slow.granted(&mut engine), 0);
    engine.pass(200);
    assert_eq!(Step { seq: 2, ..slow }.granted(&mut engine), 10);
    let back = Step {
        seq: 3,
        back: 8,
        want: 0,
        ..slow
    };
    assert_eq!(back.granted(&mut engine), 0);
    assert_eq!(back.granted(&mut engine), 0); // once, though said twice
    let other = Step {
        member: "b",
        ..slow
    };
    assert_eq!(other.granted(&mut engine), 8);
}

#[test]
fn what_comes_back_is_kept_up_to_the_burst() {
    let mut engine = Bench::new();
    for seq in 1..=3 {
        let idle = Step {
            seq,
            want: 0,
            ..ASK
        };
        assert_eq!(idle.granted(&mut engine), 0);
        engine.pass(300);
    }
    let swaps = Step {
        seq: 4,
        back: 1_000,
        ..ASK
    };
    assert_eq!(swaps.granted(&mut engine), 100);
}

#[test]
fn a_throttle_of_one_member_lowers_the_rate_of_all() {
    let mut engine = Bench::new();
    let b = Step { member: "b", ..ASK };
    assert_eq!(b.take(&mut engine).unwrap()[2], 1_000_000);
    engine.pass(300);
    let report = Step {
        spent: 120,
        throttled: 20,
        ..ASK
    };
    let lowered = report.take(&mut engine).unwrap()[2];
    let other = Step { seq: 2, ..b }.take(&mut engine).unwrap()[2];
    println!("the rate of 1000/s became {lowered} and {other} thousandths");
    assert!(lowered < 400_000 && (other - lowered).abs() < 5_000);
    // Sent before the cut: nothing new.
    let old = Step {
        seq: 3,
        throttled: 5,
        spent: 5,
        age: 900_000,
        ..b
    };
    let same = old.take(&mut engine).unwrap()[2];
    assert!((same - lowered).abs() < 10_000, "{lowered}, then {same}");
}

#[test]
fn a_hint_pauses_the_whole_scope() {
    let mut engine = Bench::new();
    let pause = Step {
        throttled: 1,
        spent: 1,
        pause: 300_000,
        ..ASK
    };
    assert_eq!(pause.granted(&mut engine), 0);
    engine.pass(100);
    assert_eq!(Step { member: "b", ..ASK }.granted(&mut engine), 0);
    engine.pass(300);
    assert!(
        Step {
            member: "b",
            seq: 2,
            ..ASK
        }
        .granted(&mut engine)
            > 0
    );
}

#[test]
fn a_hint_while_others_are_served_pauses_none() {
    let mut engine = Bench::new();
    let mut refused = 0;
    // The first cut comes with a hint, and one two seconds later.
    for seq in 1..=50 {
        engine.pass(100);
        let hinted = seq == 21 || seq == 42;
        let told = Step {
            seq,
            spent: 40,
            throttled: u64::from(hinted),
            pause: u64::from(hinted) * 5_000_000,
            ..ASK
        };
        told.take(&mut engine).unwrap();
        let other = Step {
            member: "b",
            seq,
            ..ASK
        };
        refused += u32::from(other.granted(&mut engine) == 0);
    }
    // For lack of tokens right after a cut; in a pause of 5 s it would be all that follow.
    assert!(refused <= 6, "refused {refused} times");
}

#[test]
fn shares_follow_demand_and_no_member_starves() {
    let mut engine = Bench::new();
    let greedy = ["a", "b", "c"].map(|member| Step { member, ..ASK });
    for step in &greedy {
        step.take(&mut engine).unwrap();
    }
    let modest = Step {
        member: "d",
        demand: 100,
        ..ASK
    };
    let idle = Step {
        member: "e",
        demand: 0,
        ..ASK
    };
    modest.take(&mut engine).unwrap();
    idle.take(&mut engine).unwrap();
    let share = |step: &Step, engine: &mut Bench| step.take(engine).unwrap()[1];
    // 1000 less 100 for the modest one and 20 in reserve for the idle one: a tenth of an equal
    // part.
    assert_eq!(
        share(
            &Step {
                seq: 2,
                ..greedy[0].clone()
            },
            &mut engine
        ),
        293_333
    );
    assert_eq!(share(&Step { seq: 2, ..modest }, &mut engine), 100_000);
    assert_eq!(share(&Step { seq: 2, ..idle }, &mut engine), 20_000);
}

#[test]
fn members_leave_or_are_forgotten_and_the_scope_too() {
    let mut engine = Bench::new();
    for member in ["a", "b", "c"] {
        Step { member, ..ASK }.take(&mut engine).unwrap();
    }
    let members = |answer: Vec<i64>| answer[3];
    assert_eq!(
        members(
            Step {
                member: "b",
                seq: 2,
                leave: 1,
                ..ASK
            }
            .take(&mut engine)
            .unwrap()
        ),
        2
    );
    assert!(!engine.engine.stored()["scope"].contains_key("mb"));
    for seq in 2..=7 {
        engine.pass(400);
        Step { seq, ..ASK }.take(&mut engine).unwrap();
    }
    assert_eq!(
        members(Step { seq: 8, ..ASK }.take(&mut engine).unwrap()),
        1
    );
    // Their records are gone as well.
    let stored = engine.engine.stored();
    let fields: Vec<&String> = stored["scope"].keys().collect();
    assert_eq!(fields, ["ma", "s"]);
}

#[test]
fn what_was_minted_without_the_engine_is_dropped() {
    let mut engine = Bench::new();
    let b = Step { member: "b", ..ASK };
    ASK.take(&mut engine).unwrap();
    b.take(&mut engine).unwrap();
    engine.pass(10_000);
    let back = Step { seq: 2, ..ASK }.take(&mut engine).unwrap();
    let whole = 1_000_000;
    assert_eq!(
        back,
        [0, 500_000, whole, 2, 0, 500_000, 800, whole, 0, 0, 0, 0]
    );
    // Its own part, while the other one may be alone still; and later what that one leaves.
    engine.pass(100);
    assert_eq!(Step { seq: 3, ..ASK }.granted(&mut engine), 50);
    engine.pass(401);
    assert_eq!(Step { seq: 4, ..ASK }.granted(&mut engine), 100);
}

#[test]
fn what_a_killed_member_holds_is_held_against_all_until_it_has_died() {
    let mut engine = Bench::new();
    let greedy = |seq, held| Step { seq, held, ..ASK };
    greedy(1, 0).take(&mut engine).unwrap();
    for seq in 2..=3 {
        engine.pass(100);
        greedy(seq, 100 * (seq - 2)).take(&mut engine).unwrap();
    }
    // It holds 200, and is killed. The others together may hold their one token each.
    let mut granted = Vec::new();
    for seq in 1..=13 {
        engine.pass(100);
        let b = Step {
            member: "b",
            seq,
            ..ASK
        };
        granted.push(b.granted(&mut engine));
    }
    assert_eq!(granted[..4], [2, 2, 2, 2]);
    assert_eq!(granted[9..], [2, 2, 2, 100]);
}

#[test]
fn a_clock_that_steps_back_and_forth_mints_once() {
    for back in [1, 400, 999] {
        let mut engine = Bench::new();
        let mut granted = 0;
        for seq in 1..=200 {
            engine.pass(10);
            let there = engine.micros;
            engine.micros -= 1_000 * back * ((seq + 1) % 2);
            granted += Step { seq, ..ASK }.granted(&mut engine);
            engine.micros = there;
        }
        assert!((1_900..2_000).contains(&granted), "by {back} ms: {granted}");
    }
}

#[test]
fn twice_the_weight_gets_twice_the_share() {
    let mut engine = Bench::new();
    let big = Step { weight: 2, ..ASK };
    let small = Step { member: "b", ..ASK };
    big.take(&mut engine).unwrap();
    small.take(&mut engine).unwrap();
    engine.pass(250);
    Step {
        seq: 2,
        ..big.clone()
    }
    .take(&mut engine)
    .unwrap();
    let share = |step: Step, engine: &mut Bench| step.take(engine).unwrap()[1];
    assert_eq!(share(Step { seq: 3, ..big }, &mut engine), 666_666);
    assert_eq!(share(Step { seq: 2, ..small }, &mut engine), 333_333);
}

#[test]
fn a_members_weight_is_the_one_that_it_says_last() {
    let mut engine = Bench::new();
    let ask = |member, seq, weight| Step {
        member,
        seq,
        weight,
        ..ASK
    };
    for seq in 1..=4 {
        for member in ["a", "b"] {
            ask(member, seq, 1).take(&mut engine).unwrap();
        }
        engine.pass(250);
    }
    ask("a", 5, 3).take(&mut engine).unwrap();
    engine.pass(500);
    let share = ask("b", 5, 1).take(&mut engine).unwrap()[1];
    assert_eq!(share, 250_000);
}

/// The script of a later version, which appends a field to both records.
pub(crate) fn later() -> String {
    let script = include_str!("../../src/step.lua");
    let appended = [
        ("'rise', 'shut'}", "'rise', 'shut', 'later'}"),
        ("'start', 'knock'}", "'start', 'knock', 'later'}"),
        ("shut = 0}", "shut = 0, later = 5}"),
        ("start = 0, knock = 0}", "start = 0, knock = 0, later = 5}"),
    ];
    appended
        .into_iter()
        .fold(script.to_owned(), |script, (from, to)| {
            assert!(script.contains(from), "{from}");
            script.replace(from, to)
        })
}

#[test]
fn two_versions_of_the_script_share_one_scope() {
    let mut bench = Bench::new();
    let mut next = ScriptEngine::of(&later());
    let mut granted = [0, 0];
    for seq in 1..=100 {
        bench.pass(50);
        let a = Step { seq, ..ASK };
        let b = Step {
            member: "b",
            ..a.clone()
        };
        granted[0] += a.granted(&mut bench);
        next.fall_back(bench.engine.stored());
        granted[1] += next.take(bench.micros, "b", &b.words()).unwrap()[0];
        bench.engine.fall_back(next.stored());
    }
    println!("two versions: granted {granted:?} of 5000");
    assert!(
        granted[0] + granted[1] <= 5_000 && granted.iter().all(|one| *one > 2_300),
        "{granted:?}"
    );
}

#[test]
fn a_version_that_must_not_write_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    let next = include_str!("../../src/step.lua").replace("WIRE = 1", "WIRE = 2");
    let mut next = ScriptEngine::of(&next);
    let join = |engine: &mut ScriptEngine, name| engine.take(1_000_000_000, name, &ASK.words());
    join(&mut next, "a").unwrap();
    bench.engine.fall_back(next.stored());
    let refused = join(&mut bench.engine, "b").unwrap_err();
    assert_eq!(refused, "VERSION the scope is of a later one");
    assert_eq!(bench.engine.stored(), next.stored());
    // The later one goes on with what an earlier one wrote.
    let mut earlier = ScriptEngine::new();
    join(&mut earlier, "a").unwrap();
    next.fall_back(earlier.stored());
    assert!(join(&mut next, "b").is_ok());
}

#[test]
fn a_value_that_is_no_rate_of_the_scope_does_not_stay() {
    // Field by field what a hostile or a very old writer may have left, in a scope that is
    // otherwise well.
    let well = |micros: u64| {
        format!(
            "{micros} 0 1000 1000 0 1000 1 0 {micros} 0 0 0 0 {micros} 0 0 0 0 {micros} 1 100000 100000 0 0 0 0 \
             0 0"
        )
    };
    for (field, wrong) in [
        (2, "0.001"),
        (3, "0.001"),
        (4, "9e15"),
        (5, "0"),
        (6, "9e15"),
        (7, "0.001"),
        (7, "9e15"),
        (8, "9e15"),
        (9, "9e15"),
        (10, "9e15"),
        (16, "9e15"),
        (17, "9e15"),
        (18, "9e15"),
        (19, "9e15"),
        (20, "9e15"),
        (22, "9e15"),
        (23, "9e15"),
        (24, "9e15"),
        (25, "9e15"),
        (26, "9e15"),
        (27, "9e15"),
    ] {
        for peak in ["0", "0.001"] {
            let mut engine = Bench::new();
            let text = well(engine.micros);
            let mut words: Vec<&str> = text.split(' ').collect();
            words[7] = peak;
            words[field] = wrong;
            engine.engine.write("s", &words.join(" "));
            let mut granted = 0;
            for seq in 1..=900 {
                engine.pass(100);
                let now = Step {
                    seq,
                    spent: 90,
                    ..ASK
                }
                .granted(&mut engine);
                granted += if seq > 800 { now } else { 0 };
            }
            assert!(
                granted >= 9_500,
                "field {field} {wrong}, peak {peak}: {granted}"
            );
        }
    }
}

/// Nothing is believed of a scope that was last changed in the far future.
#[test]
fn a_scope_that_is_wrong_in_every_field_starts_empty() {
    let [mut wrong, mut new] = [Bench::new(), Bench::new()];
    wrong.engine.write("s", &["9e15"; 32].join(" "));
    for seq in 1..=20 {
        let [a, b] = [&mut wrong, &mut new].map(|bench| {
            bench.pass(100);
            Step { seq, ..ASK }.granted(bench)
        });
        assert_eq!(a, b, "step {seq}");
    }
}

#[test]
fn the_silent_one_of_two_leaves_its_share_in_a_second() {
    let mut engine = Bench::new();
    let greedy = |member, seq| Step {
        member,
        seq,
        held: 0,
        ..ASK
    };
    for seq in 1..=20 {
        engine.pass(100);
        greedy("a", seq).take(&mut engine).unwrap();
        greedy("b", seq).take(&mut engine).unwrap();
    }
    let mut granted = Vec::new();
    for seq in 21..=35 {
        engine.pass(100);
        granted.push(greedy("a", seq).granted(&mut engine));
    }
    println!("after the other fell silent: {granted:?}");
    let after: i64 = granted[9..14].iter().sum();
    assert!(after >= 475, "{granted:?}");
}

#[test]
fn a_silent_member_is_judged_by_its_own_lease() {
    let mut engine = Bench::new();
    let slow = Step {
        member: "b",
        lease: 4_000_000,
        ..ASK
    };
    slow.take(&mut engine).unwrap();
    let mut shares = Vec::new();
    for seq in 1..=60 {
        engine.pass(100);
        let answer = Step { seq, ..ASK }.take(&mut engine).unwrap();
        shares.push(answer[1]);
    }
    // Its half is kept for as long as it need not ask, and is the other's within a turn then.
    assert!(shares[..39].iter().all(|share| *share == 500_000));
    assert!(shares[43..].iter().all(|share| *share > 900_000));
}

#[test]
fn members_with_leases_of_any_length_get_their_parts() {
    for lengths in [[1_000, 200], [200, 1_000], [10_000, 20], [200, 200]] {
        let mut engine = Bench::new();
        let mut granted = [0, 0];
        for millis in (0..60_000).step_by(10) {
            for (index, lease) in lengths.into_iter().enumerate() {
                // Each asks twice in its lease, and has spent all then.
                if millis % (lease / 2) != 0 {
                    continue;
                }
                let ask = Step {
                    member: ["a", "b"][index],
                    seq: 1 + millis / (lease / 2),
                    want: 10_000,
                    lease: 1_000 * lease,
                    ..ASK
                };
                let grant = ask.granted(&mut engine);
                granted[index] += if millis < 20_000 { 0 } else { grant };
            }
            engine.pass(10);
        }
        assert_eq!(granted, [20_000, 20_000], "leases of {lengths:?} ms");
    }
}

#[test]
fn each_step_books_a_slot_for_the_next_and_members_count_as_they_join() {
    let mut engine = Bench::new();
    let members: Vec<String> = (0..1_000).map(|number| format!("n{number}")).collect();
    let mut answers = Vec::new();
    for member in &members {
        let words = ASK.words();
        answers.push(engine.engine.take(engine.micros, member, &words).unwrap());
    }
    let [load, slot] = [6, 8].map(|field| answers.iter().map(|all| all[field]).collect::<Vec<_>>());
    // 5,000 steps a second: one in 200 µs.
    assert_eq!((slot[0], slot[1], slot[999]), (200, 400, 200_000));
    // A lease is two of the turns of all: what is asked for once a turn lasts for two.
    assert_eq!((load[0], load[499], load[999]), (400, 200_000, 400_000));
    // Slots that were not taken are over.
    engine.pass(1_000);
    let later = Step { seq: 2, ..ASK }.words();
    let answer = engine.engine.take(engine.micros, "n0", &later).unwrap();
    assert_eq!(answer[8], 0);
}

#[test]
fn a_newcomer_has_a_token_at_once_where_all_are_wanted() {
    let mut engine = Bench::new();
    engine.crowd();
    let newcomer = Step {
        member: "d",
        want: 1,
        demand: 0,
        ..ASK
    };
    assert_eq!(newcomer.granted(&mut engine), 1);
}

#[test]
fn one_that_found_nothing_when_it_joined_is_a_newcomer_still() {
    let mut engine = Bench::new();
    let late = Step {
        member: "d",
        want: 8,
        demand: 100,
        ..ASK
    };
    assert_eq!(late.granted(&mut engine), 0); // the scope starts empty
    engine.crowd();
    // Others take what is kept for newcomers.
    for member in 0..40 {
        let taken = engine
            .engine
            .take(engine.micros, &format!("e{member}"), &ASK.words());
        taken.unwrap();
    }
    engine.pass(2);
    let busy = Step {
        member: "n0",
        seq: 101,
        spent: 1,
        ..ASK
    };
    assert_eq!(busy.granted(&mut engine), 0);
    let again = Step { seq: 2, ..late };
    assert_eq!(again.granted(&mut engine), 1);
}

/// A tool that starts, and wants one of ten tokens a second.
fn start(member: &'static str, seq: u64) -> Step {
    Step {
        member,
        seq,
        want: 1,
        demand: 1,
        ceiling: 10,
        ..ASK
    }
}

/// Eight start at once where ten a second may go. The answer to each has the time of its turn.
#[test]
fn those_that_start_are_served_in_the_order_in_which_they_came() {
    let mut engine = Bench::new();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let turns = names.map(|name| {
        let answer = start(name, 1).take(&mut engine).unwrap();
        (answer[0], answer[9])
    });
    let expected = [1, 2, 3, 4, 5, 6, 7, 8].map(|turn| (0, turn * 100_000));
    assert_eq!(turns, expected, "the scope starts empty");
    for (turn, name) in names.into_iter().enumerate() {
        engine.pass(100);
        // The last one asks first, and so does one that has sent.
        let late = start("h", turn as u64 + 2).granted(&mut engine);
        assert_eq!(late, i64::from(name == "h"), "turn {turn}");
        if name != "h" {
            assert_eq!(start(name, 2).granted(&mut engine), 1, "{name}");
        }
        let again = Step {
            spent: 1,
            ..start(name, turn as u64 + 20)
        };
        assert_eq!(again.granted(&mut engine), 0);
    }
}

/// One that does not come at its turn costs those behind it nothing, and the next has its token.
#[test]
fn one_that_started_and_is_gone_holds_nobody_up() {
    let mut engine = Bench::new();
    for name in ["gone", "b"] {
        assert_eq!(start(name, 1).granted(&mut engine), 0);
    }
    engine.pass(200);
    assert_eq!(start("b", 2).granted(&mut engine), 1);
    assert_eq!(start("c", 1).granted(&mut engine), 1, "the token of `gone`");
    assert_eq!(start("d", 1).granted(&mut engine), 0);
}

/// Tools start at random times beside a member that wants everything, and a quarter of them is
/// killed in the line: the others have a token at their turn or soon after, and no more goes than
/// the rate.
#[test]
fn starts_are_served_beside_a_busy_member_and_killed_ones() {
    for seed in 1..=20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new();
        let names: Vec<&'static str> = (0..60)
            .map(|number| &*Box::leak(format!("t{number}").into_boxed_str()))
            .collect();
        let began = bench.micros;
        // When each asks next, and what its turn was.
        let mut asks: Vec<_> = (0..60)
            .map(|_| {
                (
                    began + rng.u64(0..12_000_000),
                    None::<u64>,
                    1_u64,
                    rng.u8(0..4) == 0,
                )
            })
            .collect();
        let (mut served, mut granted, mut busy) = (0, 0, 1);
        while bench.micros < began + 20_000_000 {
            bench.micros += 10_000;
            let all = Step {
                member: "busy",
                seq: busy,
                spent: u64::from(busy > 1),
                demand: 10_000,
                ceiling: 10,
                want: 10,
                ..ASK
            };
            busy += 1;
            granted += all.granted(&mut bench);
            for (name, ask) in names.iter().zip(&mut asks) {
                let (at, turn, seq, is_killed) = *ask;
                if at > bench.micros || (is_killed && turn.is_some()) {
                    continue;
                }
                let answer = start(name, seq).take(&mut bench).unwrap();
                let now = bench.micros;
                let told = now + u64::try_from(answer[9]).unwrap();
                granted += answer[0];
                if answer[0] == 1 {
                    let late = now.saturating_sub(turn.unwrap_or(now));
                    assert!(late <= 400_000, "seed {seed}: {name} is {late} us late");
                    served += 1;
                }
                let next = if answer[0] == 1 {
                    u64::MAX
                } else {
                    told.max(now + 10_000)
                };
                *ask = (next, turn.or(Some(told)), seq + 1, is_killed);
            }
        }
        let alive = asks.iter().filter(|(.., is_killed)| !is_killed).count();
        assert!(served >= alive, "seed {seed}: {served} of {alive}");
        assert!(
            granted <= 202,
            "seed {seed}: {granted} granted in 20 s at 10/s"
        );
    }
}

#[test]
fn the_allowance_is_the_least_that_a_member_with_requests_says() {
    let mut engine = Bench::new();
    let mut says = |member, seq, demand, ceiling| {
        engine.pass(300);
        let step = Step {
            member,
            seq,
            demand,
            ceiling,
            ..ASK
        };
        step.take(&mut engine).unwrap()[7]
    };
    assert_eq!(says("a", 1, 5_000, 1_000), 1_000_000);
    assert_eq!(says("b", 1, 5_000, 1_000), 1_000_000);
    // Less holds at once.
    assert_eq!(says("b", 2, 5_000, 600), 600_000);
    assert_eq!(says("a", 2, 5_000, 1_000), 600_000);
    // More holds once all say so, but for those that send nothing.
    for seq in 3..6 {
        assert_eq!(says("b", seq, 0, 600), 600_000);
        says("a", seq, 5_000, 2_000);
    }
    assert_eq!(says("a", 6, 5_000, 2_000), 2_000_000);
    assert_eq!(says("b", 6, 0, 600), 2_000_000);
}

/// Returns which part of the allowance a member is granted in the seconds from 60 to 70.
fn after_a_minute(engine: &mut Bench) -> f64 {
    let mut granted = 0;
    for seq in 1..=700 {
        engine.pass(100);
        let step = Step {
            seq,
            spent: 90,
            ..ASK
        };
        let now = step.granted(engine);
        granted += if seq > 600 { now } else { 0 };
    }
    f64::from(i32::try_from(granted).unwrap()) / 10_000.0
}

#[test]
fn foreign_members_are_forgotten_within_a_minute() {
    let most = "9007199254740992";
    let ghosts = |engine: &mut Bench| {
        let micros = engine.micros;
        for ghost in 0..500 {
            let record = format!("{micros} 1 50 5000 50 50 1 {most} 0 0 1 0 0 {most}");
            engine.engine.write(&format!("mghost{ghost}"), &record);
        }
    };
    let mut engine = Bench::new();
    ASK.take(&mut engine).unwrap();
    ghosts(&mut engine);
    let used = after_a_minute(&mut engine);
    println!("after 500 ghosts: {used:.3}");
    assert!(used >= 0.95, "after 500 ghosts: {used}");
}

#[test]
fn a_rate_of_two_in_three_seconds_is_granted_whole() {
    let mut engine = Bench::new();
    let mut granted = [0, 0];
    for seq in 1..=14_400 {
        engine.pass(250);
        for (member, granted) in ["a", "b"].into_iter().zip(&mut granted) {
            let step = Step {
                member,
                seq,
                want: 10,
                ceiling: 98_765,
                ..ASK
            };
            let words = step.words().replace("98765", "0.666666666");
            let answer = engine.engine.take(engine.micros, member, &words);
            *granted += answer.expect("the step is taken")[0];
        }
    }
    // Of 2,400 in an hour: the scope has less than two tokens in the end.
    assert_eq!(granted, [1_200, 1_199]);
}
