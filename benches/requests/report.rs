//! The table of all runs, and the goals beside what was reached.

use crate::Figures;
use crate::bare::Bare;
use crate::contender::Contender;
use crate::question::Question;

pub fn print(figures: &[Figures], bare: &Bare) {
    println!();
    println!(
        "{:<14}{:<8}{:>12}{:>9}{:>9}{:>9}{:>9}",
        "", "", "requests/s", "x hand", "CPU us", "p50 us", "p99 us"
    );
    for question in Question::ALL {
        for run in figures.iter().filter(|run| run.question == question) {
            let of_hand = of(figures, question, Contender::Hand).map(|hand| run.a_second / hand);
            println!(
                "{:<14}{:<8}{:>12.0}{:>9}{:>9.1}{:>9}{:>9}",
                question.name(),
                run.contender.name(),
                run.a_second,
                of_hand.map_or("-".into(), |ratio| format!("{ratio:.2}")),
                run.cpu_us,
                run.p50_us,
                run.p99_us
            );
        }
    }
    println!("checkIn       alone   {:>12.0}", bare.check_in);
    println!("submitScore   alone   {:>12.0}", bare.score);
    println!(
        "\nOne run: 64 connections with one request at a time each, the server one thread on a core of its own, the load and \
         Redis on\nthe others. `alone` is the script called 64 at a time by the library, with no server in front.\n"
    );
    goal(
        "rank, at least 0.8 x hand",
        of(figures, Question::Rank, Contender::Hand),
        figures,
        Question::Rank,
        0.8,
    );
    goal(
        "top 10, at least 0.6 x hand",
        of(figures, Question::Top, Contender::Hand),
        figures,
        Question::Top,
        0.6,
    );
    goal(
        "checkIn, at least 0.6 x the script alone",
        Some(bare.check_in),
        figures,
        Question::CheckIn,
        0.6,
    );
    goal(
        "submitScore, at least 0.6 x the script alone",
        Some(bare.score),
        figures,
        Question::Score,
        0.6,
    );
}

fn of(figures: &[Figures], question: Question, contender: Contender) -> Option<f64> {
    let mut runs = figures.iter();
    let run = runs.find(|run| run.question == question && run.contender == contender);
    run.map(|run| run.a_second)
}

fn goal(name: &str, against: Option<f64>, figures: &[Figures], question: Question, least: f64) {
    if let (Some(against), Some(ours)) = (against, of(figures, question, Contender::Ours)) {
        let ratio = ours / against;
        println!(
            "{name:<48}{ratio:>6.2}  {}",
            if ratio >= least { "yes" } else { "no" }
        );
    }
}
