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
    let before = (model.kept_since() - Days::new(40)).max(until - Days::new(MOST_DAYS));
    for from in [before, model.kept_since().max(before)] {
        let kinds = caller.kinds_if_known(&from.to_string(), &until.to_string()).await;
        let kind = |made_up: &bool| if *made_up { "MAKE_UP" } else { "NORMAL" };
        let done = model.users[user].done.range(from..);
        let all = done.map(|(date, made_up)| (date.to_string(), kind(made_up).to_owned()));
        let unknown = model.dates(from, until).any(|date| model.is_unknown(user, date));
        let wanted: Option<Vec<_>> = (!unknown).then(|| all.collect());
        assert_eq!(kinds, wanted, "user {user} from {from} on {}", model.today);
    }
    let first = model.users[user].done.keys().next();
    let lost = first.filter(|&&first| model.is_unknown(user, first));
    let since = lost.map(|&first| {
        let mut later = model.dates(first, model.kept_since());
        later.find(|date| !model.is_unknown(user, *date)).unwrap()
    });
    assert_eq!(caller.known_since().await, since.map(|since| since.to_string()));
}

/// A past day: right, or said to be at least so much, or said to be unknown.
async fn same_past(caller: &Caller<'_>, model: &Model, user: usize, rng: &mut StdRng) {
    let on = model.today - Days::new(rng.random_range(0..450));
    if on == model.today || !model.zone.exists(on) {
        return;
    }
    let said = format!("user {user} on {on} as of {}", model.today);
    let done = &model.users[user].done;
    let is_newest = done.keys().next_back() == Some(&on);
    let Some(shown) = caller.streak_if_known(&on.to_string()).await else {
        assert!(model.is_unknown(user, on) && !is_newest, "{said}");
        return;
    };
    assert!(!model.is_unknown(user, on) || is_newest, "{said}");
    let (current, longest) = (model.run_until(user, on), model.longest_by(user, on));
    match shown.exact {
        true => assert_eq!((shown.current, shown.longest), (current, longest), "{said}"),
        false => assert!(shown.current <= current && shown.longest <= longest, "{said}"),
    }
    if done.keys().next() >= Some(&model.kept_since()) {
        assert!(shown.exact, "nothing was lost: {said}");
    }
    let total = done.range(..=on).count() as u32;
    assert_eq!(
        (shown.total, shown.checked_in_today),
        (total, current > 0),
        "{said}"
    );
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
    let days = model.today.iter_days().rev().take(KEEP_DAYS as usize + 2);
    let mut pipe = redis::pipe();
    for day in days.clone() {
        for p in keyspace.partitions() {
            pipe.cmd("GET").arg(keyspace.keys().day_count(p, day));
            pipe.cmd("BITCOUNT").arg(keyspace.keys().day(p, day, 0));
        }
    }
    let figures: Vec<Option<usize>> = pipe.query_async(&mut redis).await.unwrap();
    for (day, figures) in days.zip(figures.chunks(2 * keyspace.partition_count())) {
        let sum = |from: usize| figures.iter().skip(from).step_by(2).flatten().sum::<usize>();
        let (counted, bits) = (sum(0), sum(1));
        let kept = (model.today - day).num_days() <= KEEP_DAYS as i64;
        let wanted = model
            .users
            .iter()
            .filter(|user| kept && user.done.contains_key(&day))
            .count();
        assert_eq!((counted, bits), (wanted, wanted), "{day} as of {}", model.today);
    }
}
