//! What is done, to the server and to the model.

use std::fmt::Write;

use chrono::{Datelike, Days, NaiveDate};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tallyboard::ids::UserId;

use super::USERS;
use super::comparison::same_streak;
use super::model::{Model, name, shown};
use crate::harness::*;

pub async fn step(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let user = rng.random_range(0..USERS);
    match rng.random_range(0..100) {
        0..8 => later(app, model, rng).await,
        8..55 => check_in(app, model, user).await,
        55..80 => {
            let date = to_make_up(model, user, rng);
            let receipt = app.user(&name(user)).make_up(&date.to_string()).await;
            let (outcome, earned) = model.make_up(user, date);
            let receipt_of = format!("user {user} made {date} up on {}", model.today);
            assert_eq!(receipt.outcome, outcome, "{receipt_of}");
            assert_eq!(receipt.reward, shown(earned), "{receipt_of}");
            after(model, user, &receipt);
        }
        80..86 => {
            let cards = rng.random_range(1..3);
            let changed = app.service().grant(&name(user), cards, None).await;
            model.users[user].wallet.cards += cards as u32;
            assert_eq!(
                (changed.outcome.as_str(), changed.wallet),
                ("APPLIED", shown(model.users[user].wallet))
            );
        }
        86..97 => {
            let points = rng.random_range(-400..200);
            let changed = app.service().adjust(&name(user), points, None).await;
            let wallet = &mut model.users[user].wallet;
            let enough = wallet.points + points >= 0;
            wallet.points += if enough { points } else { 0 };
            let outcome = if enough { "APPLIED" } else { "INSUFFICIENT" };
            assert_eq!(
                (changed.outcome.as_str(), changed.wallet),
                (outcome, shown(*wallet))
            );
        }
        _ => some_days(app, model, rng).await,
    }
}

async fn check_in(app: &TestApp, model: &mut Model, user: usize) {
    let (checkins, id) = (&app.running().app.checkins, UserId::parse(&name(user)).unwrap());
    let before = checkins.record(&id).await.unwrap().unwrap_or_default();
    let wanted = before.with_check_in(&model.zone, &model.horizon(), &model.rules, model.today);
    let receipt = app.user(&name(user)).check_in().await;
    let (outcome, earned) = model.check_in(user);
    let said = format!("user {user} checked in on {}", model.today);
    assert_eq!(receipt.outcome, outcome, "{said}");
    assert_eq!(receipt.reward, shown(earned), "{said}");
    after(model, user, &receipt);
    // The script makes of the record what the rules do, down to the runs that are remembered.
    assert_eq!(checkins.record(&id).await.unwrap(), Some(wanted), "{said}");
}

fn after(model: &Model, user: usize, receipt: &CheckedIn) {
    assert_eq!(
        receipt.wallet,
        shown(model.users[user].wallet),
        "user {user} on {}",
        model.today
    );
    same_streak(model, user, &receipt.streak);
}

/// Any day around the window, or rather one next to a run, where something may be joined.
fn to_make_up(model: &Model, user: usize, rng: &mut StdRng) -> NaiveDate {
    let (done, opens) = (&model.users[user].done, model.opens());
    let near = done.range(model.zone.day_before(opens)..).flat_map(|(date, _)| {
        let beside = [model.zone.day_before(*date), model.zone.day_after(*date)];
        beside.into_iter().filter(|day| !done.contains_key(day))
    });
    let near: Vec<NaiveDate> = near.collect();
    match near.choose(rng) {
        Some(&date) if rng.random_bool(0.7) => date,
        _ => {
            let back = rng.random_range(0..=u64::from(model.setup.window_days) + 3);
            let date = model.today + Days::new(1) - Days::new(back);
            match model.zone.exists(date) {
                true => date,
                false => model.today,
            }
        }
    }
}

/// The clock goes on: mostly to the next day, at times within it, at times over a few, and from late January at once to the
/// end of the year. Steady users come before that.
async fn later(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    for user in 0..USERS {
        if model.users[user].steady && rng.random_bool(0.995) {
            check_in(app, model, user).await;
        }
        let change = if model.users[user].steady { 0.02 } else { 0.1 };
        model.users[user].steady ^= rng.random_bool(change);
    }
    if (20..340).contains(&model.today.ordinal0()) && rng.random_bool(0.3) {
        return to_the_end_of_the_year(app, model, rng).await;
    }
    let days = match rng.random_range(0..10) {
        0 => 0,
        1 => rng.random_range(2..5),
        _ => 1,
    };
    model.hour = match days {
        0 => rng.random_range(model.hour..22),
        _ => rng.random_range(0..22),
    };
    let date = (0..days).fold(model.today, |day, _| model.zone.day_after(day));
    model.on(app, date);
}

/// Months go by, in which users checked in elsewhere: most of them day by day.
async fn to_the_end_of_the_year(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let from = model.today;
    let until = NaiveDate::from_ymd_opt(from.year(), 12, rng.random_range(14..=31)).unwrap();
    model.on(app, until);
    let mut rows = Vec::new();
    for user in 0..USERS {
        let gap = match rng.random_range(0..10) {
            0..7 => None,
            7..9 => Some(rng.random_range(2..20)),
            _ => continue,
        };
        let newest = model.users[user].done.keys().next_back();
        let next = newest.map_or(from, |&newest| model.zone.day_after(newest));
        let days = model.dates(next, until - Days::new(rng.random_range(0..3)));
        for (at, date) in days.enumerate() {
            if gap.is_none_or(|gap| at % (gap * 7) >= rng.random_range(1..3)) {
                rows.push((user, date));
            }
        }
    }
    import(app, model, rows).await;
}

/// A file with some days of the last two weeks. What make-ups could join stays known beyond the kept years, so only such
/// days come.
async fn some_days(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let opens = model.opens();
    let rows = (0..rng.random_range(1..4)).map(|_| {
        let date = model.today - Days::new(rng.random_range(0..13));
        (rng.random_range(0..USERS), date)
    });
    let rows: Vec<_> = rows
        .filter(|(_, date)| *date >= opens && model.zone.exists(*date))
        .collect();
    import(app, model, rows).await;
}

async fn import(app: &TestApp, model: &mut Model, rows: Vec<(usize, NaiveDate)>) {
    let mut text = String::from("user,date\n");
    for (user, date) in rows {
        writeln!(text, "{},{date}", name(user)).unwrap();
        model.import(user, date);
    }
    let file = app.dir.path().join("some.csv");
    std::fs::write(&file, text).unwrap();
    let done = tallyboard::import::check_ins::import(&app.running().app, &file).await;
    assert_eq!(done.unwrap().rejected, 0);
}
