//! The table of all runs, and the goals beside what was reached.

use crate::contender::Contender;
use crate::measure::Figures;

pub fn print(figures: &[Figures]) {
    println!();
    println!(
        "{:<10}{:>8}{:>10}{:>9}{:>7}{:>8}{:>8}{:>10}{:>8}{:>9}{:>7}{:>7}{:>8}{:>8}{:>8}{:>10}",
        "",
        "sockets",
        "changes/s",
        "messages",
        "MB",
        "B each",
        "CPU us",
        "x shared",
        "server",
        "clients",
        "redis",
        "KiB",
        "p50 ms",
        "p99 ms",
        "max ms",
        "coverage"
    );
    for run in figures {
        println!("{}", row(run, figures));
    }
    println!(
        "\nOne run. Messages, MB, CPU us (the server's, a delivered message) and shares of a core are of the measured \
         window;\nKiB is resident memory a connection; ms are from sending a change until a subscriber has it or a \
         later state.\nWhere there are many boards, changes are those of all. docs/benchmarks.md says more.\n"
    );
    goals(figures);
    for run in figures.iter().filter(|run| run.closed > 0) {
        println!(
            "{} {}: {} sockets were closed by the server",
            run.contender.name(),
            run.subscribers,
            run.closed
        );
    }
}

fn row(run: &Figures, all: &[Figures]) -> String {
    let seconds = run.window.as_secs_f64();
    let name = match run.boards {
        1 => run.contender.name().to_owned(),
        boards => format!("{} x{boards}", run.contender.name()),
    };
    let changes = match run.answered.abs_diff(run.changes) as f64 / seconds {
        behind if behind < 1.0 => format!("{:.0}", run.changes as f64 / seconds),
        _ => format!(
            "{:.0}/{:.0}",
            run.answered as f64 / seconds,
            run.changes as f64 / seconds
        ),
    };
    let of_shared = ratio(all, run, Contender::Shared).map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let share = |cpu: std::time::Duration| format!("{:.0} %", 100.0 * cpu.as_secs_f64() / seconds);
    format!(
        "{name:<10}{:>8}{changes:>10}{:>9}{:>7.1}{:>8.1}{:>8.1}{of_shared:>10}{:>8}{:>9}{:>7}{:>7.1}{:>8.1}{:>8.1}{:>8.1}{:>10}",
        run.subscribers,
        run.messages,
        run.bytes as f64 / 1e6,
        run.bytes as f64 / run.messages as f64,
        run.cpu_us(),
        share(run.server_cpu),
        share(run.clients_cpu),
        share(run.redis_cpu),
        run.kib_each,
        run.waits.quantile(0.5),
        run.waits.quantile(0.99),
        run.waits.quantile(1.0),
        format!("{:.1} %", 100.0 * run.up_to_date as f64 / run.subscribers as f64),
    )
}

/// CPU a message of `run` against that of `other` with as many subscribers of one board.
fn ratio(all: &[Figures], run: &Figures, other: Contender) -> Option<f64> {
    let other = all
        .iter()
        .find(|of| of.contender == other && of.boards == 1 && of.subscribers == run.subscribers)?;
    Some(run.cpu_us() / other.cpu_us())
}

fn goals(all: &[Figures]) {
    println!("{:<44}{:>10}{:>10}", "goals", "at", "reached");
    let line = |goal: &str, run: &Figures, reached: f64, good: bool| {
        let verdict = if good { "yes" } else { "no" };
        println!("{goal:<44}{:>10}{reached:>10.2}  {verdict}", run.subscribers);
    };
    for run in all
        .iter()
        .filter(|run| run.contender == Contender::Ours && run.boards == 1)
    {
        if let Some(of_shared) = ratio(all, run, Contender::Shared) {
            line(
                "CPU a message, at most 1.25 x shared",
                run,
                of_shared,
                of_shared <= 1.25,
            );
        }
        for (other, goal) in [(Contender::Stock, 5.0), (Contender::Node, 6.0)] {
            if let Some(of_other) = ratio(all, run, other).map(|ratio| 1.0 / ratio) {
                let text = format!("CPU a message, {} at least {goal} x ours", other.name());
                line(&text, run, of_other, of_other >= goal);
            }
        }
        line(
            "resident a connection, at most 24 KiB",
            run,
            run.kib_each,
            run.kib_each <= 24.0,
        );
        if run.subscribers >= 5_000 {
            let p99 = run.waits.quantile(0.99);
            line("p99 of 5,000, below 250 ms", run, p99, p99 < 250.0);
        }
    }
}
