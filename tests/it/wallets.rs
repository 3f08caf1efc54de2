//! Wallets, as a host's backend fills and empties them.

use futures::future::join_all;
use serde_json::json;

use crate::harness::*;

fn held(points: i64, make_up_cards: u32) -> Reward {
    Reward {
        points,
        make_up_cards,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_filled_and_emptied_but_never_below_nothing() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let service = app.service();
        for (points, outcome, left) in [
            (-1, "INSUFFICIENT", 0),
            (100, "APPLIED", 100),
            (-101, "INSUFFICIENT", 100),
            (-100, "APPLIED", 0),
            (0, "APPLIED", 0),
            (9_007_199_254_740_991, "APPLIED", 9_007_199_254_740_991),
            (-1, "APPLIED", 9_007_199_254_740_990),
        ] {
            let changed = service.adjust("amy", points, None).await;
            assert_eq!(
                (changed.outcome.as_str(), changed.wallet),
                (outcome, held(left, 0)),
                "{points}"
            );
        }
        let too_many = "mutation { adjustWallet(userId: \"amy\", points: 2) { outcome } }";
        let (code, message) = service.refusal(too_many, json!({})).await;
        assert_eq!(code, "BAD_USER_INPUT");
        assert!(message.contains("9007199254740991 points"), "{message}");

        // A wallet that is full to the last point but one does not keep its user from checking in.
        let receipt = app.user("amy").check_in().await;
        assert_eq!(
            (receipt.outcome.as_str(), receipt.reward, receipt.wallet),
            ("CHECKED_IN", held(10, 0), held(9_007_199_254_740_991, 0))
        );
        assert_eq!(app.user("amy").wallet().await, receipt.wallet);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_may_be_there_before_the_first_check_in_and_is_kept_by_it() {
    let app = spawn_app().at("2027-03-01T08:00:00Z").await;
    let amy = app.user("amy");
    app.service().adjust("amy", 7, None).await;
    app.service().grant("amy", 3, None).await;
    let streak = amy.streak().await;
    assert_eq!((streak.total, streak.last_date, streak.at_risk), (0, None, false));
    assert_eq!(amy.calendar("2027-02").await[0].state, "BEFORE_FIRST");
    assert_eq!(amy.make_up("2027-02-28").await.outcome, "OUTSIDE_WINDOW");
    assert_eq!(amy.streak_on("2027-02-28").await.total, 0);

    let receipt = amy.check_in().await;
    assert_eq!(receipt.wallet, held(17, 3));
    assert_eq!((receipt.streak.current, receipt.streak.total), (1, 1));

    // And history may come into a record that has a wallet only.
    app.service().adjust("bob", 5, None).await;
    let file = app.dir.path().join("days.csv");
    std::fs::write(&file, "user,date\nbob,2027-02-27\nbob,2027-02-28\n").unwrap();
    let written = tallyboard::import::check_ins::import(&app.running().app, &file).await;
    assert_eq!(written.unwrap().applied, 2);
    let bob = app.user("bob");
    assert_eq!((bob.streak().await.current, bob.wallet().await), (2, held(5, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_changes_a_wallet_once_and_another_call_under_it_is_refused() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let service = app.service();
        let key = Some("order 1");
        assert_eq!(service.adjust("amy", 100, key).await.outcome, "APPLIED");
        service.adjust("amy", -30, None).await;
        app.set("2027-03-02T07:59:59Z");
        let again = service.adjust("amy", 100, key).await;
        assert_eq!((again.outcome.as_str(), again.wallet), ("REPLAYED", held(70, 0)));

        for other in [
            "adjustWallet(userId: \"amy\", points: 101, reason: \"a test\", idempotencyKey: \"order 1\")",
            "adjustWallet(userId: \"amy\", points: 100, idempotencyKey: \"order 1\")",
        ] {
            let (code, message) = service
                .refusal(&format!("mutation {{ {other} {{ outcome }} }}"), json!({}))
                .await;
            assert_eq!(code, "BAD_USER_INPUT", "{other}");
            assert!(message.starts_with("KEY_CONFLICT"), "{message}");
        }
        // The key is one of this mutation and this user.
        assert_eq!(service.grant("amy", 1, key).await.outcome, "APPLIED");
        assert_eq!(service.grant("amy", 1, key).await.outcome, "REPLAYED");
        assert_eq!(service.adjust("zed", 100, key).await.outcome, "APPLIED");
        assert_eq!(app.user("amy").wallet().await, held(70, 1));

        // What was refused may come about later.
        let spend = Some("order 2");
        assert_eq!(service.adjust("amy", -80, spend).await.outcome, "INSUFFICIENT");
        service.adjust("amy", 10, None).await;
        let spent = service.adjust("amy", -80, spend).await;
        assert_eq!((spent.outcome.as_str(), spent.wallet.points), ("APPLIED", 0));
        let again = service.adjust("amy", -80, spend).await;
        assert_eq!((again.outcome.as_str(), again.wallet.points), ("REPLAYED", 0));

        app.set("2027-03-03T08:00:00Z");
        assert_eq!(
            service.adjust("amy", 100, key).await.outcome,
            "APPLIED",
            "a day later"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_changes_under_one_key_are_one_and_without_keys_all_count() {
    let app = spawn_app().await;
    let service = app.service();
    let changes = join_all((0..50).map(|_| service.adjust("amy", 3, Some("once")))).await;
    let applied = changes.iter().filter(|change| change.outcome == "APPLIED");
    assert_eq!(applied.count(), 1);
    assert!(changes.iter().all(|change| change.wallet.points == 3));
    join_all((0..50).map(|_| service.adjust("amy", -1, None))).await;
    join_all((0..50).map(|_| service.grant("amy", 2, None))).await;
    assert_eq!(app.user("amy").wallet().await, held(0, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_backend_changes_wallets_and_only_within_bounds() {
    let app = spawn_app().await;
    let grant = |cards: i32| {
        format!("mutation {{ grantMakeUpCards(userId: \"amy\", cards: {cards}) {{ outcome }} }}")
    };
    let adjust = "mutation { adjustWallet(userId: \"amy\", points: 5) { outcome } }".to_owned();
    for query in [grant(1), adjust] {
        let (code, _) = app.user("amy").refusal(&query, json!({})).await;
        assert_eq!(code, "FORBIDDEN", "{query}");
        let (code, _) = app.anonymous().refusal(&query, json!({})).await;
        assert_eq!(code, "UNAUTHENTICATED", "{query}");
    }
    let service = app.service();
    let long = "x".repeat(501);
    for query in [
        grant(0),
        grant(-1),
        grant(1_001),
        format!("mutation {{ adjustWallet(userId: \"amy\", points: 1, reason: \"{long}\") {{ outcome }} }}"),
        "mutation { adjustWallet(userId: \"amy\", points: 1, idempotencyKey: \"\") { outcome } }".into(),
        "mutation { adjustWallet(userId: \"a b\", points: 1) { outcome } }".into(),
        "mutation { adjustWallet(userId: \"amy\", points: 9007199254740992) { outcome } }".into(),
    ] {
        assert_eq!(
            service.refusal(&query, json!({})).await.0,
            "BAD_USER_INPUT",
            "{query}"
        );
    }
    for _ in 0..10 {
        join_all((0..100).map(|_| service.grant("amy", 1_000, None))).await;
    }
    let (code, message) = service.refusal(&grant(1), json!({})).await;
    assert_eq!(code, "BAD_USER_INPUT");
    assert!(message.contains("1000000 make-up cards"), "{message}");
    assert_eq!(app.user("amy").wallet().await, held(0, 1_000_000));
}
