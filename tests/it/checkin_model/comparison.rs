//! What is compared: all that the door shows, and the day bitmaps behind it.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use rand::Rng;
use rand::rngs::StdRng;

use super::model::{Model, name, shown};
use super::{COUNTS, KEEP_DAYS, POINTS, USERS};
use crate::harness::*;

/// The days that a range of `checkIns` may span.
const MOST_DAYS: u64 = 1_099;

pub async fn compare(app: &TestApp, model: &Model, rng: &mut StdRng) {
    app.look_after().await;
    for user in 0..USERS {
        let caller = app.user(&name(user));
        same_streak(model, user, &caller.streak().await);
        assert_eq!(
            caller.wallet().await,
            shown(model.users[user].wallet),
            "user {user}"
        );
        let months_back = [0, 31, 31 * rng.random_range(2..16)];
        for day in months_back.map(|back| model.today - Days::new(back)) {
            let month = caller.calendar(&day.format("%Y-%m").to_string()).await;
            same_month(model, user, &month);
        }
        same_kinds(&caller, model, user).await;
        same_past(&caller, model, user, rng).await;
    }
    same_boards(app, model).await;
    same_days(app, model).await;
}

pub fn same_streak(model: &Model, user: usize, shown: &Streak) {
    let is = (
        shown.current,
        shown.longest,
        shown.total,
        shown.checked_in_today,
        shown.at_risk,
    );
    assert_eq!(is, model.streak(user), "user {user} on {}", model.today);
    let newest = model.users[user].done.keys().next_back();
    assert_eq!(shown.last_date, newest.map(NaiveDate::to_string));
    let next = model.rules.for_streak(shown.current + 1);
    assert_eq!(shown.next_reward, Some(self::shown(next)));
}

fn same_month(model: &Model, user: usize, days: &[Day]) {
    let opens = model.opens();
    for day in days {
        let on = date(&day.date);
        let said = format!("user {user}, {on} as of {}", model.today);
        assert_eq!(day.state, model.state(user, on), "{said}");
        let can = model.outcome_since(opens, user, on) == "MADE_UP";
        assert_eq!(day.can_make_up, can, "{said}");
    }
}

async fn same_kinds(caller: &Caller<'_>, model: &Model, user: usize) {
    let until = model.today + Days::new(1);
    let from = (model.kept_since() - Days::new(40)).max(until - Days::new(MOST_DAYS));
    let kinds = caller.kinds(&from.to_string(), &until.to_string()).await;
    let done = model.users[user].done.range(model.kept_since().max(from)..);
    let kind = |made_up: &bool| if *made_up { "MAKE_UP" } else { "NORMAL" };
    let wanted: Vec<(String, String)> = done
        .map(|(date, made_up)| (date.to_string(), kind(made_up).to_owned()))
        .collect();
    assert_eq!(kinds, wanted, "user {user} on {}", model.today);
}

/// A past day of the kept years: what is known of it for sure.
async fn same_past(caller: &Caller<'_>, model: &Model, user: usize, rng: &mut StdRng) {
    let days = (model.today - model.kept_since()).num_days() as u64;
    let on = model.today - Days::new(rng.random_range(0..=days.min(60)));
    if on == model.today || !model.zone.exists(on) {
        return;
    }
    let shown = caller.streak_on(&on.to_string()).await;
    let current = model.run_until(user, on);
    // Of a run that began before the kept years only the kept part may be known.
    if on - Days::new(current.into()) >= model.kept_since() {
        assert_eq!(
            shown.current, current,
            "user {user} on {on} as of {}",
            model.today
        );
    }
    let total = model.users[user].done.range(..=on).count() as u32;
    assert_eq!((shown.total, shown.checked_in_today), (total, current > 0));
}

async fn same_boards(app: &TestApp, model: &Model) {
    for (board, periods) in [("points", POINTS), ("count", COUNTS)] {
        for kind in periods {
            let shown = app.service().board(board, &period(kind.as_str()), None).await;
            let shown: BTreeMap<String, i64> = shown.order().into_iter().collect();
            let key = (board, kind.span_of(model.today).key());
            let wanted = model.boards.get(&key).cloned().unwrap_or_default();
            let wanted: BTreeMap<String, i64> = wanted
                .into_iter()
                .map(|(user, points)| (name(user), points))
                .collect();
            assert_eq!(shown, wanted, "{key:?}");
        }
    }
}

/// Bits and counters of the kept days.
async fn same_days(app: &TestApp, model: &Model) {
    let keyspace = &app.running().app.keyspace;
    let mut redis = app.redis().await;
    for day in model.today.iter_days().rev().take(KEEP_DAYS as usize + 2) {
        let (mut counted, mut bits) = (0, 0);
        for p in keyspace.partitions() {
            let (count, ones): (Option<usize>, usize) = redis::pipe()
                .cmd("GET")
                .arg(keyspace.keys().day_count(p, day))
                .cmd("BITCOUNT")
                .arg(keyspace.keys().day(p, day, 0))
                .query_async(&mut redis)
                .await
                .unwrap();
            counted += count.unwrap_or(0);
            bits += ones;
        }
        let kept = (model.today - day).num_days() <= KEEP_DAYS as i64;
        let wanted = model
            .users
            .iter()
            .filter(|user| kept && user.done.contains_key(&day))
            .count();
        assert_eq!((counted, bits), (wanted, wanted), "{day} as of {}", model.today);
    }
}
