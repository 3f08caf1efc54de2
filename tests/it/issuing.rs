//! Making tokens: `tallyboard token`, and `/dev/token`.

use std::fs;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::*;

const VIEWER: &str = "{ viewer { role user { id } } }";
const SECRET: &str = "[auth]\njwt_secret = \"a secret of the tests that is long enough\"\n";

fn guarded(place: &Place) -> Server {
    let mut command = tallyboard(&["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(place.config()).arg("--data-dir").arg(place.data());
    Server::start(command)
}

fn token(place: &Place, args: &[&str]) -> std::process::Command {
    let mut command = tallyboard(&["token"]);
    command.args(args).arg("--config").arg(place.config());
    command
}

/// The only line that it prints.
#[track_caller]
fn printed(place: &Place, args: &[&str]) -> String {
    let done = run(&mut token(place, args));
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    done.stdout.trim_end().to_owned()
}

async fn viewer(server: &Server, token: &str) -> Value {
    let mut answer = server
        .ask(("Authorization", &format!("Bearer {token}")), VIEWER)
        .await;
    assert_eq!(answer.get("errors"), None, "{answer}");
    answer["data"]["viewer"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_key_serves_without_dev_whoever_bears_a_token_that_the_command_makes() {
    let place = Place::new(&format!(
        "{SECRET}issuer = \"https://id.example\"\naudience = \"tallyboard\"\n"
    ));
    let server = guarded(&place);
    let amy = printed(&place, &["--user", "amy", "--expires-in", "15m"]);
    assert_eq!(
        viewer(&server, &amy).await,
        json!({ "role": "USER", "user": { "id": "amy" } })
    );
    let backend = printed(&place, &["--role", "SERVICE"]);
    assert_eq!(
        viewer(&server, &backend).await,
        json!({ "role": "SERVICE", "user": null })
    );
    let analyst = printed(
        &place,
        &["--role", "ANALYST", "--user", "ann", "--expires-in", "30d"],
    );
    assert_eq!(viewer(&server, &analyst).await["role"], "ANALYST");

    let brief = printed(&place, &["--user", "amy", "--expires-in", "1s"]);
    let refused = async || {
        server
            .ask(("Authorization", &format!("Bearer {brief}")), VIEWER)
            .await
    };
    eventually("its end", async || {
        refused().await["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    })
    .await;
    let done = server.end("TERM");
    assert_eq!(done.code, Some(0));
    assert!(
        !done.stderr.contains("long enough"),
        "the secret is in the log: {}",
        done.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_key_signs_for_a_server_that_knows_the_public_one() {
    for signer in [Signer::rsa().named("k1"), Signer::ec().named("k1")] {
        let place = Place::new("");
        let file = |name: &str, text: &str| {
            let path = place.dir.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let keys = file("keys.json", &json!({ "keys": [signer.jwk()] }).to_string());
        let private = file("private.pem", &signer.private);
        let stranger = file("stranger.pem", &Signer::rsa().private);
        place.configure(&format!("[auth]\njwt_key_file = {keys:?}\n"));
        let server = guarded(&place);
        for args in [
            &["--user", "amy", "--private-key", &private][..],
            &["--user", "amy", "--private-key", &private, "--kid", "k1"],
        ] {
            assert_eq!(viewer(&server, &printed(&place, args)).await["role"], "USER");
        }
        for (args, words) in [
            (
                &["--user", "amy"][..],
                "public keys, which sign nothing: give the private one by --private-key",
            ),
            (
                &["--user", "amy", "--private-key", &stranger],
                "would refuse it: the token is not signed by a key",
            ),
            (
                &["--user", "amy", "--private-key", &private, "--kid", "k2"],
                "would refuse it",
            ),
            (
                &["--user", "amy", "--private-key", &keys],
                "the key signs nothing here",
            ),
            (
                &["--user", "amy", "--private-key", "/nowhere"],
                "/nowhere cannot be read",
            ),
        ] {
            let refused = run(&mut token(&place, args));
            assert!(refused.refusal().contains(words), "{args:?}: {refused:?}");
        }
    }
}

#[test]
fn a_token_that_could_not_be_used_is_not_made() {
    let place = Place::new(SECRET);
    for (args, words) in [
        (&[][..], "names a user"),
        (&["--role", "USER"], "names a user"),
        (&["--role", "KING"], "there is no role \"KING\""),
        (&["--role", "ANONYMOUS"], "there is no role"),
        (&["--user", "a b"], "no spaces"),
    ] {
        let refused = run(&mut token(&place, args));
        assert!(refused.refusal().contains(words), "{args:?}: {refused:?}");
    }
    let forever = run(&mut token(&place, &["--user", "amy", "--expires-in", "forever"]));
    assert_eq!(forever.code, Some(2), "{forever:?}");
    assert!(
        forever
            .stderr
            .contains("no duration of a token; 90s, 15m, 1h or 30d"),
        "{forever:?}"
    );
    let keyless = run(&mut token(&Place::new(""), &["--user", "amy"]));
    assert!(
        keyless.refusal().starts_with("there is no key to sign with"),
        "{keyless:?}"
    );
}

#[test]
fn settings_of_keys_that_contradict_each_other_or_show_a_secret_are_refused_without_showing_it() {
    let secret = "jwt_secret = \"a secret of the tests that is long enough\"";
    for (auth, words) in [
        (
            format!("{secret}\njwt_key_file = \"keys.json\""),
            "auth.jwt_key_file: cannot be set beside auth.jwt_secret",
        ),
        (
            format!("{secret}\njwt_secret_file = \"secret\""),
            "auth.jwt_secret_file: cannot be set beside auth.jwt_secret",
        ),
        (
            "jwt_secret_file = \"a\"\njwt_key_file = \"b\"".into(),
            "cannot be set beside auth.jwt_secret_file",
        ),
        (
            "jwt_secret = \"too short a secret\"".into(),
            "auth.jwt_secret: has 18 bytes, and HS256 wants 32",
        ),
        (
            "jwt_secret = 12345678901234567".into(),
            "auth.jwt_secret: is no text; quote it",
        ),
        ("user_claim = \"\"".into(), "auth.user_claim"),
        ("user_claim = \"role\"".into(), "auth.role_claim"),
        (
            "leeway_seconds = 301".into(),
            "auth.leeway_seconds: 301 is not within 0 to 300",
        ),
    ] {
        let place = Place::new(&format!("[auth]\n{auth}\n"));
        let refused = run(tallyboard(&["config", "check", "--config"]).arg(place.config()));
        let message = refused.refusal();
        assert!(message.contains(words), "{auth}: {message}");
        for secret in ["long enough", "too short a", "12345678"] {
            assert!(!message.contains(secret), "{message}");
        }
    }
    let place = Place::new("");
    let by_number = run(tallyboard(&["config", "check", "--config"])
        .arg(place.config())
        .env("TALLYBOARD_AUTH__JWT_SECRET", "1234567890"));
    assert!(
        by_number
            .refusal()
            .contains("TALLYBOARD_AUTH__JWT_SECRET: is no text"),
        "{by_number:?}"
    );
    assert!(!by_number.stderr.contains("1234567890"), "{by_number:?}");

    let place = Place::new(SECRET);
    let checked = run(tallyboard(&["config", "check", "--config"]).arg(place.config()));
    assert!(checked.stdout.contains("tokens: HS256\n"), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_dev_tokens_are_handed_out_to_whoever_asks_on_this_machine() {
    let signer = Signer::rsa();
    let dir = tempfile::TempDir::new().unwrap();
    let public = dir.path().join("public.pem");
    fs::write(&public, &signer.public).unwrap();
    let file = public.to_str().unwrap().to_owned();
    let secret = "a secret of the tests that is long enough";
    for app in [
        spawn_app().await,
        spawn_app()
            .with(|settings| settings.auth.jwt_secret = secret.into())
            .await,
        spawn_app()
            .with(|settings| settings.auth.jwt_key_file = file)
            .await,
    ] {
        let url = app.url().replace("/graphql", "/dev/token");
        let linked = async |query: &str| {
            let answer = app.http().get(format!("{url}?{query}")).send().await.unwrap();
            (answer.status(), answer.json::<Value>().await.unwrap())
        };
        let (status, amy) = linked("user=amy&expiresIn=90s").await;
        assert_eq!(
            (status, &amy["expiresAt"]),
            (StatusCode::OK, &json!("2027-03-01T08:01:30Z"))
        );
        let caller = app.bearer(amy["token"].as_str().unwrap());
        assert_eq!(
            caller.data(VIEWER, json!({})).await["viewer"]["user"]["id"],
            "amy"
        );
        let posted = app
            .http()
            .post(&url)
            .json(&json!({ "role": "ANALYST" }))
            .send()
            .await
            .unwrap();
        let posted: Value = posted.json().await.unwrap();
        let caller = app.bearer(posted["token"].as_str().unwrap());
        assert_eq!(caller.data(VIEWER, json!({})).await["viewer"]["role"], "ANALYST");
        for (query, words) in [
            ("", "names a user"),
            ("role=KING&user=amy", "there is no role"),
            ("user=a%20b", "no spaces"),
            ("user=amy&expiresIn=1w", "no duration"),
            ("name=amy", "unknown field `name`"),
        ] {
            let (status, answer) = linked(query).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
            assert!(
                answer["error"].as_str().unwrap().contains(words),
                "{query}: {answer}"
            );
        }
        let foreign = app
            .http()
            .get(format!("{url}?user=amy"))
            .header("Origin", "https://evil.example");
        assert_eq!(foreign.send().await.unwrap().status(), StatusCode::FORBIDDEN);
        let both = caller
            .post(VIEWER, json!({}))
            .header("X-Dev-Role", "ADMIN")
            .send()
            .await
            .unwrap();
        assert_eq!(both.status(), StatusCode::BAD_REQUEST, "one of them, not both");
    }
}
