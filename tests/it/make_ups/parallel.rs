//! Make-ups at the same time as each other and as check-ins, on one server and on two.

use chrono::Days;
use futures::future::join_all;
use serde_json::{Value, json};

use super::in_march;
use crate::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_make_ups_and_a_hundred_in_one_document_are_one() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let (amy, bob) = (app.user("amy"), app.user("bob"));
        in_march(&app, "amy", [1, 3]).await;
        app.user("bob").check_in().await;
        for user in ["amy", "bob"] {
            app.service().grant(user, 60, None).await;
        }
        let (made_up, granted) = tokio::join!(
            join_all((0..50).map(|_| amy.make_up("2027-03-02"))),
            join_all((0..10).map(|_| async { app.service().adjust("amy", 1, None).await })),
        );
        let fresh = made_up.iter().filter(|receipt| receipt.outcome == "MADE_UP");
        assert_eq!(fresh.count(), 1);
        assert!(
            made_up
                .iter()
                .all(|receipt| ["MADE_UP", "ALREADY_CHECKED_IN"].contains(&receipt.outcome.as_str()))
        );
        assert!(granted.iter().all(|change| change.outcome == "APPLIED"));
        assert_eq!(
            amy.wallet().await,
            Reward {
                points: 30,
                make_up_cards: 59
            }
        );
        assert_eq!(amy.streak().await.current, 3);

        app.set("2027-03-05T12:00:00Z");
        let aliases: Vec<String> = (0..100)
            .map(|i| {
                format!("a{i}: makeUpCheckIn(date: \"2027-03-04\") {{ outcome wallet {{ makeUpCards }} }}")
            })
            .collect();
        let data = bob
            .data(&format!("mutation {{ {} }}", aliases.join(" ")), json!({}))
            .await;
        let payloads: Vec<&Value> = data.as_object().unwrap().values().collect();
        let fresh = payloads.iter().filter(|payload| payload["outcome"] == "MADE_UP");
        assert_eq!(fresh.count(), 1);
        assert!(
            payloads
                .iter()
                .all(|payload| payload["wallet"]["makeUpCards"] == 59)
        );
    }
}

/// A missed day is made up while today is checked in, by several at once: each happens once, and both count.
async fn at_once(servers: &[&TestApp]) {
    let (mut total, mut points) = (0, 0);
    for round in 0..12 {
        let first = date("2027-03-01") + Days::new(3 * round);
        let [first, missed, today] = [0, 1, 2].map(|later| first + Days::new(later));
        let clocks = |day| {
            for server in servers {
                server.set(&format!("{day}T12:00:00Z"));
            }
        };
        clocks(first);
        points += servers[0].user("amy").check_in().await.reward.points;
        servers[0].service().grant("amy", 3, None).await;
        clocks(today);
        let missed = missed.to_string();
        let callers: Vec<Caller<'_>> = servers.iter().map(|server| server.user("amy")).collect();
        let mutations = callers.iter().cycle().take(6);
        let (checked_in, made_up) = tokio::join!(
            join_all(mutations.clone().map(|caller| caller.check_in())),
            join_all(mutations.map(|caller| caller.make_up(&missed))),
        );
        let done = |receipts: &[CheckedIn], outcome| {
            let fresh = receipts.iter().filter(|receipt| receipt.outcome == outcome);
            assert!(
                receipts
                    .iter()
                    .all(|receipt| [outcome, "ALREADY_CHECKED_IN"].contains(&receipt.outcome.as_str()))
            );
            let rewards: Vec<i64> = fresh.map(|receipt| receipt.reward.points).collect();
            assert_eq!(rewards.len(), 1, "{outcome} in round {round}");
            rewards[0]
        };
        points += done(&checked_in, "CHECKED_IN") + done(&made_up, "MADE_UP");
        total += 3;
        for caller in &callers {
            let streak = caller.streak().await;
            assert_eq!(
                (streak.current, streak.longest, streak.total),
                (total, total, total)
            );
            let held = Reward {
                points,
                make_up_cards: 2 * (round as u32 + 1),
            };
            assert_eq!(caller.wallet().await, held);
            assert_eq!(
                caller.kinds(&first.to_string(), &today.to_string()).await.len(),
                3
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_make_up_and_a_check_in_of_one_user_at_the_same_time_both_count_once() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        at_once(&[&app]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_redis_make_up_and_check_in_for_one_user_once() {
    for partitions in both_partitions() {
        let redis = OwnRedis::start().await;
        let server = || {
            spawn_app()
                .partitions(partitions)
                .with(|settings| settings.redis.url = redis.url())
        };
        let (one, other) = (server().await, server().await);
        at_once(&[&one, &other]).await;
    }
}
