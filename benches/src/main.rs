//! The harness: `cargo run --release -p paceline-benches -- --table`, and more under `--help`.

use core::time::Duration;
use std::path::PathBuf;
use std::{fs, io};

use clap::Parser;
use paceline_benches::case::{Case, Seat};
use paceline_benches::machine::Machine;
use paceline_benches::pool::Plan;
use paceline_benches::rounds::{Course, Results, run};
use paceline_benches::tail::{self, Tail};
use paceline_benches::{cases, memory, plot, predict, save, table};

/// Measures paceline beside its peers.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct Options {
    /// Print the comparison, and which targets are met.
    #[arg(long)]
    table: bool,
    /// Print what the counted writes allow on many cores.
    #[arg(long)]
    predict: bool,
    /// Draw throughput over threads, and latencies, into an HTML file.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Save what was measured, with the machine and the commit.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Draw what others have saved beside.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Print latencies with many more threads than cores.
    #[arg(long)]
    tail: bool,
    /// Print what limiters occupy, and how long it takes to make one.
    #[arg(long)]
    memory: bool,
    /// Print the names of the cases that run under an instruction counter.
    #[arg(long)]
    list: bool,
    /// Only the cases whose path and name contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// How often each case has its turn.
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// The most threads, for charts and files. By default as many as there are cores, and at least
    /// two.
    #[arg(long)]
    threads: Option<usize>,
    /// How long each case runs for the latencies, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    millis: u64,
    /// Nanoseconds of a thread's own work between operations, for the latencies.
    #[arg(long, default_value_t = 1_000)]
    work: u64,
    /// How many limiters are made to be weighed.
    #[arg(long, default_value_t = memory::COUNT)]
    count: usize,
    /// Do one case so many times and nothing else, for instruction counters. The name is exact.
    #[arg(long, value_name = "TIMES", requires = "only")]
    just: Option<u64>,
    #[arg(long, hide = true)]
    weigh: Option<usize>,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    if let Some(kind) = options.weigh {
        print!("{}", memory::weigh(kind, options.count));
        return Ok(());
    }
    if let Some(times) = options.just {
        return just(&options.only, times);
    }
    let chosen = cases::matching(&options.only);
    if options.list {
        let countable = chosen.iter().filter(|case| case.countable);
        countable.for_each(|case| println!("{}", case.id()));
    }
    if options.memory {
        print!("{}", memory::table(options.count)?);
    }
    let tails = if options.tail || options.plot.is_some() {
        tails(&chosen, &options)
    } else {
        Vec::new()
    };
    if options.tail {
        print!("{}", tail::table(&tails));
    }
    if options.table || options.predict || options.plot.is_some() || options.save.is_some() {
        report(&chosen, &tails, &options)?;
    }
    Ok(())
}

fn report(chosen: &[Case], tails: &[Tail], options: &Options) -> io::Result<()> {
    let machine = Machine::here();
    let course = Course {
        threads: threads(options, machine.cores),
        rounds: options.rounds,
        plan: Plan {
            slices: 15,
            length: Duration::from_micros(50),
        },
    };
    let results: Results<'_> = run(chosen, course, |round| {
        eprint!("\rround {} of {} ", round.saturating_add(1), options.rounds);
    });
    eprintln!();
    if options.table {
        print!("{}", table::tables(&machine, &results));
    }
    if options.predict {
        print!("{}", predict::table(&results));
    }
    let rows = save::rows(&results);
    if let Some(file) = &options.save {
        fs::write(file, save::text(&machine, &rows))?;
    }
    if let Some(file) = &options.plot {
        let mut sources = vec![(machine.text(), rows)];
        for other in &options.with {
            let source = save::read(&fs::read_to_string(other)?);
            sources.push(source.ok_or_else(|| {
                io::Error::other(format!("{}: not a file of this program", other.display()))
            })?);
        }
        fs::write(
            file,
            plot::page(&sources, predict::HandOver::of(&results), tails),
        )?;
    }
    Ok(())
}

/// One and two threads always, and for charts and files more of them, up to the most.
fn threads(options: &Options, cores: usize) -> Vec<usize> {
    let most = options.threads.unwrap_or(cores).max(2);
    let wide = options.plot.is_some() || options.save.is_some() || options.threads.is_some();
    let steps = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
    let mut threads: Vec<usize> = steps.into_iter().filter(|step| *step <= most).collect();
    if !threads.contains(&most) {
        threads.push(most);
    }
    threads.truncate(if wide { threads.len() } else { 2 });
    threads
}

fn tails(chosen: &[Case], options: &Options) -> Vec<Tail> {
    let mut tails = Vec::new();
    for case in chosen.iter().filter(|case| tail::is_wanted(case)) {
        for threads in tail::THREADS {
            eprint!("\r{}, {threads} threads\x1b[K", case.id());
            let length = Duration::from_millis(options.millis);
            tails.push(tail::measure(case, threads, length, options.work));
        }
    }
    eprintln!();
    tails
}

fn just(id: &str, times: u64) -> io::Result<()> {
    let cases = cases::all();
    let case = cases.iter().find(|case| case.id() == id);
    let case = case.ok_or_else(|| io::Error::other(format!("no case {id}")))?;
    let stage = (case.stage)();
    let mut runner = stage(Seat {
        thread: 0,
        threads: 1,
    });
    println!("granted: {} of {times}", runner(times));
    Ok(())
}
