//! Names and avatars.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::*;

const SET: &str = "mutation ($input: ProfileInput!) { setProfile(input: $input) { id name avatarUrl } }";

async fn set(caller: &Caller<'_>, input: Value) -> Value {
    caller.data(SET, json!({ "input": input })).await["setProfile"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_of_a_profile_stays_and_what_is_null_goes() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let service = app.service();
        let (name, url) = ("Amélie 签到", "https://example.org/a.png?size=2");
        let steps = [
            (json!({ "userId": "amy" }), (json!(null), json!(null))),
            (
                json!({ "userId": "amy", "name": name }),
                (json!(name), json!(null)),
            ),
            (
                json!({ "userId": "amy", "avatarUrl": url }),
                (json!(name), json!(url)),
            ),
            (
                json!({ "userId": "amy", "name": null }),
                (json!(null), json!(url)),
            ),
            (
                json!({ "userId": "amy", "name": "A", "avatarUrl": null }),
                (json!("A"), json!(null)),
            ),
            (json!({ "userId": "amy" }), (json!("A"), json!(null))),
        ];
        for (input, (name, avatar)) in steps {
            let wanted = json!({ "id": "amy", "name": name, "avatarUrl": avatar });
            assert_eq!(set(&service, input.clone()).await, wanted, "{input}");
            let seen = "{ user(id: \"amy\") { id name avatarUrl } }";
            assert_eq!(app.anonymous().data(seen, json!({})).await["user"], wanted);
        }
        // Two users of one bucket or partition keep their own.
        set(&service, json!({ "userId": "bob", "name": "B" })).await;
        assert_eq!(set(&service, json!({ "userId": "amy" })).await["name"], "A");
        let app = app.restarted(|_| {}).await;
        assert_eq!(set(&app.service(), json!({ "userId": "bob" })).await["name"], "B");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_has_limits() {
    let app = spawn_app().await;
    let service = app.service();
    let long_url = |bytes: usize| format!("https://{}", "x".repeat(bytes - 8));
    for good in [
        json!({ "name": "n" }),
        json!({ "name": "签".repeat(100) }),
        json!({ "avatarUrl": long_url(2_048) }),
        json!({ "avatarUrl": "http://a" }),
    ] {
        let mut input = good;
        input["userId"] = json!("amy");
        set(&service, input).await;
    }
    for bad in [
        json!({ "name": "" }),
        json!({ "name": "签".repeat(101) }),
        json!({ "name": "a\nb" }),
        json!({ "avatarUrl": "" }),
        json!({ "avatarUrl": "ftp://example.org/a.png" }),
        json!({ "avatarUrl": "javascript:alert(1)" }),
        json!({ "avatarUrl": "https://example.org/a b" }),
        json!({ "avatarUrl": long_url(2_049) }),
        json!({ "name": "fine", "avatarUrl": "" }),
    ] {
        let mut input = bad.clone();
        input["userId"] = json!("amy");
        let refused = service.refusal(SET, json!({ "input": input })).await;
        assert_eq!(refused.0, "BAD_USER_INPUT", "{bad}");
    }
    let kept = set(&service, json!({ "userId": "amy" })).await;
    assert_eq!(kept["name"], json!("签".repeat(100)), "a refusal changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_come_from_backends_unless_users_may_set_their_own() {
    for own in [false, true] {
        let app = spawn_app().with(|s| s.profile.user_writes = own).await;
        let amy = app.user("amy");
        let refusal =
            async |caller: Caller<'_>, input: Value| caller.refusal(SET, json!({ "input": input })).await.0;
        assert_eq!(
            refusal(app.anonymous(), json!({ "name": "X" })).await,
            "UNAUTHENTICATED"
        );
        assert_eq!(
            refusal(app.anonymous(), json!({ "userId": "amy", "name": "X" })).await,
            "UNAUTHENTICATED"
        );
        assert_eq!(
            refusal(amy.clone(), json!({ "userId": "bob", "name": "X" })).await,
            "FORBIDDEN"
        );
        assert_eq!(
            refusal(app.service(), json!({ "name": "X" })).await,
            "BAD_USER_INPUT"
        );
        if own {
            assert_eq!(set(&amy, json!({ "name": "A" })).await["name"], "A");
            assert_eq!(
                set(&amy, json!({ "userId": "amy", "name": "B" })).await["name"],
                "B"
            );
        } else {
            assert_eq!(refusal(amy.clone(), json!({ "name": "A" })).await, "FORBIDDEN");
        }
        assert_eq!(
            set(&app.service(), json!({ "userId": "bob", "name": "C" })).await["name"],
            "C"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_was_ever_there_is_a_user() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let (seen, service) = ("query ($id: ID!) { user(id: $id) { id } }", app.service());
        let user = async |id: &str| app.anonymous().data(seen, json!({ "id": id })).await["user"].take();
        let odd = "auth0|5f{7}:*?\"\\";
        for id in ["scored", "checked", "named", "named-only", odd] {
            assert_eq!(user(id).await, Value::Null, "{id}");
        }
        service.score("points", "scored", 0).await;
        app.user("checked").check_in().await;
        set(&service, json!({ "userId": "named", "name": "N" })).await;
        service.score("points", odd, 1).await;
        for id in ["scored", "checked", "named", odd] {
            assert_eq!(user(id).await, json!({ "id": id }));
        }
        assert_eq!(
            service.score("points", "refused", 10_000_001).await.outcome,
            "REJECTED"
        );
        assert_eq!(user("nobody").await, Value::Null);
        for bad in ["", "a b", "ä", "a\u{7f}", &"x".repeat(129)] {
            assert_eq!(
                app.anonymous().refusal(seen, json!({ "id": bad })).await.0,
                "BAD_USER_INPUT",
                "{bad:?}"
            );
        }
    }
}

/// What Redis counted since its counters were reset.
async fn counted(app: &TestApp) -> BTreeMap<String, u64> {
    let text: String = redis::cmd("INFO")
        .arg("everything")
        .query_async(&mut app.redis().await)
        .await
        .unwrap();
    let calls = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        let value = value
            .strip_prefix("calls=")
            .and_then(|v| v.split(',').next())
            .unwrap_or(value);
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(calls).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profiles_of_a_page_are_fetched_in_one_go() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let service = app.service();
        for user in 0..60 {
            let user = format!("user-{user}");
            service.score("points", &user, 1).await;
            set(
                &service,
                json!({ "userId": user, "name": format!("name of {user}") }),
            )
            .await;
        }
        let page = "{ leaderboard(board: \"points\") { top(first: 50) { user { id name avatarUrl } } } }";
        service.data(page, json!({})).await; // scripts are loaded, connections stand
        let mut redis = app.redis().await;
        redis::cmd("CONFIG")
            .arg("RESETSTAT")
            .exec_async(&mut redis)
            .await
            .unwrap();
        let data = service.data(page, json!({})).await;
        let counted = counted(&app).await;
        let users = data["leaderboard"]["top"].as_array().unwrap();
        assert_eq!(users.len(), 50);
        for standing in users {
            let id = standing["user"]["id"].as_str().unwrap();
            assert_eq!(standing["user"]["name"], format!("name of {id}"));
        }
        // One a user; the audit of the generations may come in between, one a partition.
        let fetched = counted["cmdstat_hmget"];
        assert!(
            (50..=50 + u64::from(partitions)).contains(&fetched),
            "{fetched} HMGET for 50 users"
        );
        // A pipeline is read at once, or in a few pieces; one by one they would be fifty.
        let reads = counted["total_reads_processed"];
        assert!(reads < 20, "{reads} reads for one page");
    }
}
