//! Following a user's rank: when it is told, what it says of who stands right before, and who went past.

use std::time::Duration;

use serde_json::{Value, json};
use tallyboard::config::{Board, Settings};
use tallyboard::leaderboard::{BoardOrder, ScoreOperator};

use crate::harness::*;

const RANK: &str = "subscription ($user: ID!, $span: BoardSpan) {
    rankChanged(board: \"race\", userId: $user, span: $span) { cause leaderboard { id version }
        standing { rank points } previousRank above { user { id } points } pointsToAbove
        overtakenBy { user { id } points } overtakenCount } }";

const TOP: &str = "subscription { leaderboardChanged(board: \"race\", span: { period: ALL_TIME }) {
    cause leaderboard { version } } }";

const ORDERS: [BoardOrder; 2] = [BoardOrder::HighestFirst, BoardOrder::LowestFirst];

#[tokio::test(flavor = "multi_thread")]
async fn a_users_own_scores_are_told_with_the_rank_before_and_what_is_lacking() {
    for (partitions, order) in all_kinds() {
        let race = Race::begin(partitions, order).await;
        race.score(&[("cat", 30), ("bob", 20), ("amy", 10)]).await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        race.told(&mut amy, json!(["SNAPSHOT", [3, 10], null, "bob", 10, [], 0]))
            .await;
        race.score(&[("amy", 25)]).await;
        race.told(&mut amy, json!(["CHANGED", [2, 25], 3, "cat", 5, [], 0]))
            .await;
        race.score(&[("amy", 27)]).await;
        race.told(&mut amy, json!(["CHANGED", [2, 27], 2, "cat", 3, [], 0]))
            .await;
        race.score(&[("amy", 31)]).await;
        race.told(&mut amy, json!(["CHANGED", [1, 31], 2, null, null, [], 0]))
            .await;
        // Who falls behind by the own score has not been overtaken.
        race.score(&[("amy", 5)]).await;
        race.told(&mut amy, json!(["CHANGED", [3, 5], 1, "bob", 15, [], 0]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_past_is_named_the_best_three_first_and_counted() {
    for (partitions, order) in all_kinds() {
        let race = Race::begin_slowly(partitions, order).await;
        race.score(&[("amy", 50), ("bob", 40), ("cat", 30), ("dan", 20), ("eve", 10)])
            .await;
        race.score(&[("last", 1)]).await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        race.told(&mut amy, json!(["SNAPSHOT", [1, 50], null, null, null, [], 0]))
            .await;
        race.score_within_a_pulse(&[("bob", 60)]).await;
        race.told(&mut amy, json!(["CHANGED", [2, 50], 1, "bob", 10, ["bob"], 1]))
            .await;
        race.score_within_a_pulse(&[("cat", 70), ("dan", 55)]).await;
        race.told(
            &mut amy,
            json!(["CHANGED", [4, 50], 2, "dan", 5, ["cat", "dan"], 2]),
        )
        .await;
        // Somebody new counts, who stood before already does not, and who only came closer neither.
        race.score_within_a_pulse(&[
            ("hal", 52),
            ("dan", 59),
            ("gus", 58),
            ("last", 49),
            ("eve", 80),
            ("fay", 65),
        ])
        .await;
        race.told_in_the_end(
            &mut amy,
            json!(["CHANGED", [8, 50], 4, "hal", 2, ["eve", "fay", "gus"], 4]),
        )
        .await;
    }
}

/// What was written before a full state, and is told to all with the next pulse only, is in that state already.
#[tokio::test(flavor = "multi_thread")]
async fn who_went_past_before_the_snapshot_is_not_told_after_it() {
    for partitions in both_partitions() {
        let race = Race::begin_slowly(partitions, BoardOrder::HighestFirst).await;
        race.score(&[("amy", 50), ("bob", 40), ("cat", 30)]).await;
        let mut cat = race.rank("cat", period("ALL_TIME")).await;
        race.told(&mut cat, json!(["SNAPSHOT", [3, 30], null, "bob", 10, [], 0]))
            .await; // from now on it is noted who moves
        race.score_within_a_pulse(&[("bob", 60)]).await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        race.told(&mut amy, json!(["SNAPSHOT", [2, 50], null, "bob", 10, [], 0]))
            .await;
        race.score_within_a_pulse(&[("cat", 55)]).await;
        race.told(&mut amy, json!(["CHANGED", [3, 50], 2, "cat", 5, ["cat"], 1]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_while_others_change_and_the_place_and_who_stands_before_do_not() {
    for (partitions, order) in all_kinds() {
        let race = Race::begin(partitions, order).await;
        race.score(&[("cat", 90), ("bob", 70), ("amy", 50), ("dan", 10)])
            .await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        let mut top = race.top().await;
        race.told(&mut amy, json!(["SNAPSHOT", [3, 50], null, "bob", 20, [], 0]))
            .await;
        for (user, points) in [("dan", 20), ("cat", 95), ("eve", 5), ("dan", 49), ("cat", 80)] {
            race.score(&[(user, points)]).await;
            assert_eq!(top.update().await["cause"], "CHANGED");
        }
        let profile = "mutation { setProfile(input: { userId: \"dan\", name: \"Dan\" }) { id } }";
        race.app.service().data(profile, json!({})).await;
        assert_eq!(top.update().await["cause"], "CHANGED");
        // The first that is told is of whoever stands right before.
        race.score(&[("bob", 75)]).await;
        race.told(&mut amy, json!(["CHANGED", [3, 50], 3, "bob", 25, [], 0]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_may_be_awaited_and_taken_off() {
    for partitions in both_partitions() {
        let race = Race::begin(partitions, BoardOrder::HighestFirst).await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        let mut top = race.top().await;
        race.told(&mut amy, json!(["SNAPSHOT", null, null, null, null, [], 0]))
            .await;
        race.score(&[("bob", 20)]).await;
        top.update().await;
        race.score(&[("amy", 10)]).await;
        race.told(&mut amy, json!(["CHANGED", [2, 10], null, "bob", 10, [], 0]))
            .await;
        assert!(race.app.service().remove("race", "bob").await);
        race.told(&mut amy, json!(["CHANGED", [1, 10], 2, null, null, [], 0]))
            .await;
        assert!(race.app.service().remove("race", "amy").await);
        race.told(&mut amy, json!(["CHANGED", null, 1, null, null, [], 0]))
            .await;
        race.score(&[("amy", 3)]).await;
        race.told(&mut amy, json!(["CHANGED", [1, 3], null, null, null, [], 0]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_of_the_day_is_told_where_it_begins_something() {
    for partitions in both_partitions() {
        let race = Race::begin(partitions, BoardOrder::HighestFirst).await;
        race.score(&[("amy", 10), ("bob", 20)]).await;
        let mut day = race.rank("amy", period("DAY")).await;
        let mut ever = race.rank("amy", period("ALL_TIME")).await;
        for socket in [&mut day, &mut ever] {
            race.told(socket, json!(["SNAPSHOT", [2, 10], null, "bob", 10, [], 0]))
                .await;
        }
        race.app.set("2027-03-02T00:00:00Z");
        let begun = race
            .told(&mut day, json!(["PERIOD_STARTED", null, null, null, null, [], 0]))
            .await;
        assert_eq!(begun["leaderboard"]["id"], "race/2027-03-02");
        race.score(&[("amy", 40)]).await;
        race.told(&mut day, json!(["CHANGED", [1, 40], null, null, null, [], 0]))
            .await;
        race.told(&mut ever, json!(["CHANGED", [1, 40], 2, null, null, [], 0]))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_over_windows_and_in_heat_are_followed_too() {
    for partitions in both_partitions() {
        let race = Race::begin_with(partitions, BoardOrder::HighestFirst, |board| {
            board.operator = ScoreOperator::Increment;
            board.windows = vec![2];
            board.half_life_hours = 6.0;
        })
        .await;
        race.score(&[("amy", 100), ("bob", 80)]).await;
        let mut week = race.rank("amy", last_days(2)).await;
        let mut hot = race.rank("amy", heat()).await;
        for socket in [&mut week, &mut hot] {
            race.told(socket, json!(["SNAPSHOT", [1, 100], null, null, null, [], 0]))
                .await;
        }
        race.score(&[("bob", 40)]).await;
        for socket in [&mut week, &mut hot] {
            race.told(socket, json!(["CHANGED", [2, 100], 1, "bob", 20, ["bob"], 1]))
                .await;
        }
        race.app.set("2027-03-01T14:00:00Z"); // a half-life later
        race.told(&mut hot, json!(["CHANGED", [2, 50], 2, "bob", 10, [], 0]))
            .await;
        race.app.set("2027-03-02T14:00:00Z");
        let turned = race
            .told(
                &mut week,
                json!(["PERIOD_STARTED", [2, 100], null, "bob", 20, [], 0]),
            )
            .await;
        assert_eq!(turned["leaderboard"]["id"], "race/last-2");
        race.app.set("2027-03-03T14:00:00Z");
        race.told(
            &mut week,
            json!(["PERIOD_STARTED", null, null, null, null, [], 0]),
        )
        .await;
    }
}

/// The cooling of whoever stands right before is shown also while the own points, rounded, stay.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lacking_in_heat_is_told_as_it_shrinks() {
    let race = Race::begin_with(1, BoardOrder::HighestFirst, |board| {
        board.operator = ScoreOperator::Increment;
        board.half_life_hours = 6.0;
    })
    .await;
    race.score(&[("amy", 1), ("bob", 1_000)]).await;
    let mut hot = race.rank("amy", heat()).await;
    race.told(&mut hot, json!(["SNAPSHOT", [2, 1], null, "bob", 999, [], 0]))
        .await;
    race.app.set("2027-03-01T09:00:00Z"); // 2^(-1/6) of it is left
    race.told(&mut hot, json!(["CHANGED", [2, 1], 2, "bob", 890, [], 0]))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_users_are_followed_at_once_each_with_its_own() {
    for partitions in both_partitions() {
        let race = Race::begin_slowly(partitions, BoardOrder::HighestFirst).await;
        race.score(&[("amy", 50), ("bob", 40), ("zed", 10), ("last", 1)])
            .await;
        let mut amy = race.rank("amy", period("ALL_TIME")).await;
        let mut bob = race.rank("bob", period("ALL_TIME")).await;
        race.told(&mut amy, json!(["SNAPSHOT", [1, 50], null, null, null, [], 0]))
            .await;
        race.told(&mut bob, json!(["SNAPSHOT", [2, 40], null, "amy", 10, [], 0]))
            .await;
        race.score_within_a_pulse(&[("bob", 55)]).await;
        race.told(&mut amy, json!(["CHANGED", [2, 50], 1, "bob", 5, ["bob"], 1]))
            .await;
        race.told(&mut bob, json!(["CHANGED", [1, 55], 2, null, null, [], 0]))
            .await;
        race.score_within_a_pulse(&[("zed", 52)]).await;
        race.told(&mut amy, json!(["CHANGED", [3, 50], 2, "zed", 2, ["zed"], 1]))
            .await;
        race.score_within_a_pulse(&[("zed", 60)]).await;
        race.told(&mut amy, json!(["CHANGED", [3, 50], 3, "bob", 5, [], 0]))
            .await;
        race.told(&mut bob, json!(["CHANGED", [2, 55], 1, "zed", 5, ["zed"], 1]))
            .await;
    }
}

fn all_kinds() -> impl Iterator<Item = (u32, BoardOrder)> {
    both_partitions()
        .into_iter()
        .flat_map(|partitions| ORDERS.map(|order| (partitions, order)))
}

/// One board to run on. Points are told as if more were better, whatever its order.
struct Race {
    app: TestApp,
    order: BoardOrder,
}

impl Race {
    async fn begin(partitions: u32, order: BoardOrder) -> Race {
        Race::begin_with(partitions, order, |_| {}).await
    }

    async fn begin_with(partitions: u32, order: BoardOrder, change: impl FnOnce(&mut Board)) -> Race {
        let mut board = Board {
            id: "race".into(),
            order,
            operator: ScoreOperator::Set,
            ..Default::default()
        };
        change(&mut board);
        let app = spawn_app().partitions(partitions).with(off_disk);
        let app = app.with(|settings| settings.board = vec![board]).await;
        Race { app, order }
    }

    /// With pulses so far apart that what is written together is told together.
    async fn begin_slowly(partitions: u32, order: BoardOrder) -> Race {
        let race = Race::begin(partitions, order).await;
        let slowly = |settings: &mut Settings| settings.live.interval_ms = 300;
        Race {
            app: race.app.restarted(slowly).await,
            order,
        }
    }

    fn points(&self, points: i64) -> i64 {
        match self.order {
            BoardOrder::HighestFirst => points,
            BoardOrder::LowestFirst => 1_000 - points,
        }
    }

    async fn score(&self, scores: &[(&str, i64)]) {
        let scores = scores
            .iter()
            .map(|&(user, points)| json!({ "board": "race", "userId": user, "points": self.points(points) }));
        self.app.service().apply_all(&scores.collect::<Vec<_>>()).await;
    }

    /// Scores right after a pulse that all followers of ranks have read by, so that all of it comes with the next one.
    async fn score_within_a_pulse(&self, scores: &[(&str, i64)]) {
        let mut clock = self.rank("clock", period("ALL_TIME")).await;
        assert_eq!(clock.update().await["cause"], "SNAPSHOT");
        self.score(&[("clock", -1)]).await;
        assert_eq!(clock.update().await["cause"], "CHANGED");
        assert!(self.app.service().remove("race", "clock").await);
        assert_eq!(clock.update().await["cause"], "CHANGED");
        self.score(scores).await;
    }

    async fn top(&self) -> Socket {
        let mut socket = Socket::open(&self.app.anonymous()).await;
        socket.subscribe(TOP, json!({})).await;
        assert_eq!(socket.update().await["cause"], "SNAPSHOT");
        socket
    }

    async fn rank(&self, user: &str, span: Value) -> Socket {
        let mut socket = Socket::open(&self.app.anonymous()).await;
        socket
            .subscribe(RANK, json!({ "user": user, "span": span }))
            .await;
        socket
    }

    /// The next update is this: cause, rank and points, rank before, who stands right before, what is lacking to it, who
    /// went past, how many. A place that was read a moment before it was heard who took it comes in two updates, and those
    /// are taken together.
    async fn told(&self, socket: &mut Socket, wanted: Value) -> Value {
        self.gathered(socket, &wanted, |short| short[5] != wanted[5])
            .await
    }

    /// The same for several scores, some of which may be told before the others.
    async fn told_in_the_end(&self, socket: &mut Socket, wanted: Value) -> Value {
        self.gathered(socket, &wanted, |_| true).await
    }

    async fn gathered(&self, socket: &mut Socket, wanted: &Value, more: impl Fn(&Value) -> bool) -> Value {
        let mut update = socket.update().await;
        let mut short = self.short(&update);
        while short != *wanted && update["cause"] == "CHANGED" && more(&short) {
            let next = tokio::time::timeout(Duration::from_secs(5), socket.update()).await;
            update = next.unwrap_or_else(|_| panic!("{short}, not {wanted}"));
            let (before, mut past) = (short, self.short(&update));
            let names = before[5]
                .as_array()
                .unwrap()
                .iter()
                .chain(past[5].as_array().unwrap());
            past[5] = names.cloned().collect();
            past[6] = json!(before[6].as_u64().unwrap() + past[6].as_u64().unwrap());
            past[2] = before[2].clone();
            short = past;
        }
        assert_eq!(short, *wanted, "{update}");
        update
    }

    fn short(&self, update: &Value) -> Value {
        let standing = &update["standing"];
        let points = |row: &Value| self.points(row["points"].as_i64().unwrap());
        let past = update["overtakenBy"].as_array().unwrap();
        json!([
            update["cause"],
            (!standing.is_null()).then(|| json!([standing["rank"], points(standing)])),
            update["previousRank"],
            update["above"]["user"]["id"],
            update["pointsToAbove"],
            past.iter().map(|row| &row["user"]["id"]).collect::<Vec<_>>(),
            update["overtakenCount"],
        ])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_late_gets_what_is_true_then_also_where_nothing_was_told() {
    for (partitions, order) in all_kinds() {
        let race = Race::begin(partitions, order).await;
        race.score(&[("amy", 50)]).await;
        let query =
            "subscription { rankChanged(board: \"race\", userId: \"amy\", span: { period: ALL_TIME }) {
            cause leaderboard { participants version } standing { rank percentile } } }";
        let follow = async || {
            let mut socket = Socket::open(&race.app.anonymous()).await;
            socket.subscribe(query, json!({})).await;
            let snapshot = socket.update().await;
            (socket, snapshot)
        };
        let (_early, snapshot) = follow().await;
        assert_eq!(snapshot["leaderboard"]["participants"], 1);
        for behind in ["bob", "cat", "dan"] {
            race.score(&[(behind, 1)]).await;
        }
        eventually("a snapshot of what is true now", async || {
            let (_late, snapshot) = follow().await;
            snapshot["leaderboard"]["participants"] == 4 && snapshot["standing"]["rank"] == 1
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_of_whoever_is_shown_is_told() {
    for partitions in both_partitions() {
        let race = Race::begin(partitions, BoardOrder::HighestFirst).await;
        race.score(&[("bob", 60), ("amy", 50), ("last", 1)]).await;
        let query =
            "subscription { rankChanged(board: \"race\", userId: \"amy\", span: { period: ALL_TIME }) {
            cause previousRank overtakenCount standing { rank user { name } } above { user { name } } } }";
        let mut socket = Socket::open(&race.app.anonymous()).await;
        socket.subscribe(query, json!({})).await;
        socket.update().await;
        let name = "mutation ($input: ProfileInput!) { setProfile(input: $input) { id } }";
        let mut names = [json!(null), json!(null)];
        // Nobody sees `last`, so the next update is of amy's or bob's new name.
        for (user, shown) in [("last", None), ("amy", Some(0)), ("bob", Some(1))] {
            let input = json!({ "input": { "userId": user, "name": format!("{user} the great") } });
            race.app.service().data(name, input).await;
            let Some(shown) = shown else { continue };
            names[shown] = json!(format!("{user} the great"));
            let update = socket.update().await;
            let told = json!({ "cause": "CHANGED", "previousRank": 2, "overtakenCount": 0,
                "standing": { "rank": 2, "user": { "name": names[0] } }, "above": { "user": { "name": names[1] } } });
            assert_eq!(update, told);
        }
    }
}
