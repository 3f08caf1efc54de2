//! Tokens: which are good, how the others are refused over each transport, and what happens when one expires.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::rsa::KeySize;
use reqwest::header::WWW_AUTHENTICATE;
use serde_json::{Value, json};
use tallyboard::clock::Clock;
use tallyboard::config::Settings;
use tallyboard::server;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::harness::*;

const PATIENCE: Duration = Duration::from_secs(30);
const NOW: &str = "2027-03-01T08:00:00Z";
const VIEWER: &str = "{ viewer { role user { id } } }";
const TOP: &str = "subscription { leaderboardChanged(board: \"points\") { cause } }";
const SECRET: &str = "a secret of the tests that is long enough";
const TRANSPORTS: [&str; 2] = ["graphql-transport-ws", "graphql-ws"];

/// Seconds since 1970, so many after [`NOW`].
fn after(seconds: i64) -> i64 {
    at(NOW).timestamp() + seconds
}

/// What a good token of amy's says, with some of it said otherwise; null takes it out.
fn claims(change: Value) -> Value {
    let mut claims =
        json!({ "sub": "amy", "iss": "https://id.example", "aud": "tallyboard", "exp": after(3_600) });
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    claims
}

/// An app that knows tokens by the keys in this file, and of one issuer and audience.
async fn keyed_by(file: &Path) -> TestApp {
    let path = file.to_str().unwrap().to_owned();
    let app = spawn_app().guarded().at(NOW);
    app.with(|settings| {
        settings.auth.jwt_key_file = path;
        settings.auth.issuer = "https://id.example".into();
        settings.auth.audience = "tallyboard".into();
    })
    .await
}

async fn secret_app() -> TestApp {
    let app = spawn_app().guarded().at(NOW);
    app.with(|settings| settings.auth.jwt_secret = SECRET.into())
        .await
}

fn file(dir: &TempDir, text: &str) -> std::path::PathBuf {
    let path = dir.path().join("keys");
    fs::write(&path, text).unwrap();
    path
}

async fn viewer(caller: &Caller<'_>) -> Value {
    caller.data(VIEWER, json!({})).await["viewer"].clone()
}

/// That these credentials are refused over HTTP, a stream, and both kinds of socket.
async fn refused(caller: &Caller<'_>, what: &str) {
    for accept in [
        "application/json",
        "text/event-stream",
        "multipart/mixed;boundary=graphql;subscriptionSpec=1.0",
    ] {
        for query in [VIEWER, TOP] {
            let request = caller.post(query, json!({})).header("Accept", accept);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 401, "{what} over {accept}");
            assert_eq!(
                answer.headers()[WWW_AUTHENTICATE],
                "Bearer error=\"invalid_token\""
            );
            let answer: Value = answer.json().await.unwrap();
            let errors = answer["errors"].as_array().unwrap();
            assert_eq!(errors.len(), 1, "{what}: {answer}");
            assert_eq!(errors[0].get("locations"), None, "{answer}");
            assert_eq!(
                errors[0]["extensions"]["code"], "UNAUTHENTICATED",
                "{what}: {answer}"
            );
            assert!(answer.get("data").is_none_or(Value::is_null), "{what}: {answer}");
        }
    }
    for protocol in TRANSPORTS {
        let mut wire = Wire::connect(&caller.app.address(), Some(protocol)).await;
        wire.send(json!({ "type": "connection_init", "payload": caller.claims() }))
            .await;
        if protocol == "graphql-ws" {
            let told = wire.answer().await;
            assert_eq!(told["type"], "connection_error", "{what}: {told}");
        }
        let (code, reason) = wire.closed().await;
        assert_eq!(code, 4403, "{what} over {protocol}: {reason}");
        assert!(reason.starts_with("Forbidden: "), "{what}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_names_its_user_and_role_and_without_one_nobody_is_signed_in() {
    let app = secret_app().await;
    let signer = Signer::secret(SECRET);
    for (said, shown) in [
        (json!({}), json!({ "role": "USER", "user": { "id": "amy" } })),
        (
            json!({ "role": "USER" }),
            json!({ "role": "USER", "user": { "id": "amy" } }),
        ),
        (
            json!({ "role": null }),
            json!({ "role": "USER", "user": { "id": "amy" } }),
        ),
        (
            json!({ "role": "ANALYST" }),
            json!({ "role": "ANALYST", "user": { "id": "amy" } }),
        ),
        (
            json!({ "role": "SERVICE", "sub": null }),
            json!({ "role": "SERVICE", "user": null }),
        ),
        (
            json!({ "role": "ANALYST", "sub": null }),
            json!({ "role": "ANALYST", "user": null }),
        ),
        (
            json!({ "role": "ADMIN", "sub": "auth0|5f" }),
            json!({ "role": "ADMIN", "user": { "id": "auth0|5f" } }),
        ),
    ] {
        let caller = app.bearer(signer.token(&claims(said.clone())));
        assert_eq!(viewer(&caller).await, shown, "{said}");
        for protocol in TRANSPORTS {
            let mut wire = Wire::connect(&app.address(), Some(protocol)).await;
            wire.send(json!({ "type": "connection_init", "payload": caller.claims() }))
                .await;
            assert_eq!(
                wire.answer().await["type"],
                "connection_ack",
                "{said} over {protocol}"
            );
        }
        let mut wire = Wire::open(&app.address(), caller.claims()).await;
        wire.send(subscribe("1", VIEWER)).await;
        assert_eq!(wire.data("1").await["viewer"], shown, "{said}");
    }
    let nobody = json!({ "role": "ANONYMOUS", "user": null });
    assert_eq!(viewer(&app.anonymous()).await, nobody);
    assert_eq!(
        viewer(&app.authorized("")).await,
        nobody,
        "clients that have no token send it empty"
    );
    let token = signer.token(&claims(json!({})));
    for spelled in ["bearer", "BEARER"] {
        assert_eq!(
            viewer(&app.authorized(&format!("{spelled} {token}"))).await["role"],
            "USER"
        );
    }
    let claims = json!({ "authorization": format!("Bearer {token}") });
    let mut wire = Wire::open(&app.address(), claims).await;
    wire.send(subscribe("1", VIEWER)).await;
    assert_eq!(wire.data("1").await["viewer"]["role"], "USER");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_that_is_no_good_is_refused_over_every_transport_and_never_taken_for_nobody() {
    let (signer, stranger) = (Signer::rsa(), Signer::rsa());
    let dir = TempDir::new().unwrap();
    let app = keyed_by(&file(&dir, &signer.public)).await;
    assert_eq!(
        viewer(&app.bearer(signer.token(&claims(json!({}))))).await["role"],
        "USER"
    );

    let by_public_key = |key: &str| Signer::secret(key).token(&claims(json!({ "role": "ADMIN" })));
    let good = signer.token(&claims(json!({})));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let admin = Signer::unsigned(&claims(json!({ "role": "ADMIN" })));
    let forged = format!(
        "{}.{}.{signature}",
        head.split_once('.').unwrap().0,
        admin.split('.').nth(1).unwrap()
    );
    let mut cases = vec![
        ("by another key", stranger.token(&claims(json!({})))),
        ("by a secret", by_public_key(SECRET)),
        ("HS256 by the public key", by_public_key(&signer.public)),
        (
            "HS256 by the public key without its last line end",
            by_public_key(signer.public.trim()),
        ),
        ("by a key of another kind", Signer::ec().token(&claims(json!({})))),
        ("alg none", admin.clone()),
        ("alg none with a signature", format!("{admin}{signature}")),
        ("without its signature", format!("{head}.")),
        ("with claims of its own", forged),
        ("garbage", "garbage".into()),
        ("garbage in three parts", "a.b.c".into()),
        ("undefined", "undefined".into()),
        ("of two words", format!("{good} {good}")),
    ];
    for (what, change) in [
        ("expired", json!({ "exp": after(-60) })),
        ("expired in the year 1970", json!({ "exp": 0 })),
        ("without an end", json!({ "exp": null })),
        ("with an end that is no number", json!({ "exp": "tomorrow" })),
        ("not valid yet", json!({ "nbf": after(60) })),
        ("valid from no number", json!({ "nbf": "now" })),
        ("of another issuer", json!({ "iss": "https://evil.example" })),
        ("without an issuer", json!({ "iss": null })),
        ("for another audience", json!({ "aud": "another" })),
        ("for other audiences", json!({ "aud": ["another", "third"] })),
        ("without an audience", json!({ "aud": null })),
        ("without a user", json!({ "sub": null })),
        ("without a user, as USER", json!({ "sub": null, "role": "USER" })),
        ("of a user who is a number", json!({ "sub": 7 })),
        ("of a user who cannot be", json!({ "sub": "a b" })),
        ("of a user without a name", json!({ "sub": "" })),
        ("of an unknown role", json!({ "role": "KING" })),
        ("of a role in other letters", json!({ "role": "admin" })),
        ("of the role ANONYMOUS", json!({ "role": "ANONYMOUS" })),
        ("of several roles", json!({ "role": ["ADMIN"] })),
    ] {
        cases.push((what, signer.token(&claims(change))));
    }
    for (what, token) in cases {
        refused(&app.bearer(token), what).await;
    }
    for authorization in ["Basic YW15OmE=", "Bearer", &good, &format!("Token {good}")] {
        refused(&app.authorized(authorization), authorization).await;
    }
    let twice = app.anonymous().post(VIEWER, json!({}));
    let twice = twice
        .header("Authorization", format!("Bearer {good}"))
        .header("Authorization", "Bearer a.b.c");
    assert_eq!(twice.send().await.unwrap().status(), 401);

    let audiences = signer.token(&claims(json!({ "aud": ["another", "tallyboard"] })));
    assert_eq!(viewer(&app.bearer(audiences)).await["role"], "USER");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_token_is_refused_is_said_in_words() {
    let app = secret_app().await;
    let signer = Signer::secret(SECRET);
    for (change, words) in [
        (json!({ "exp": after(-60) }), "the token has expired"),
        (json!({ "exp": null }), "exp"),
        (json!({ "nbf": after(60) }), "not valid yet"),
        (json!({ "sub": null }), "it needs the claim sub"),
        (json!({ "role": "KING" }), "none of USER, ANALYST, SERVICE, ADMIN"),
    ] {
        let caller = app.bearer(signer.token(&claims(change)));
        let answer = caller.try_ask(VIEWER, json!({})).await.unwrap();
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_may_be_apart_by_the_leeway_and_no_more() {
    let signer = Signer::secret(SECRET);
    for (leeway, good, bad) in [
        (5, [(4, -4), (5, 3_600)], [(6, 3_600), (0, -5)]),
        (0, [(0, 1), (-1, 1)], [(1, 3_600), (0, 0)]),
    ] {
        let app = spawn_app().guarded().at(NOW).with(|settings| {
            settings.auth.jwt_secret = SECRET.into();
            settings.auth.leeway_seconds = leeway;
        });
        let app = app.await;
        let token =
            |(from, to): (i64, i64)| signer.token(&claims(json!({ "nbf": after(from), "exp": after(to) })));
        for times in good {
            assert_eq!(
                viewer(&app.bearer(token(times))).await["role"],
                "USER",
                "{leeway}: {times:?}"
            );
        }
        for times in bad {
            let answer = app
                .bearer(token(times))
                .post(VIEWER, json!({}))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 401, "{leeway}: {times:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_claims_may_name_the_user_and_the_role() {
    let app = spawn_app().guarded().at(NOW).with(|settings| {
        settings.auth.jwt_secret = SECRET.into();
        settings.auth.user_claim = "uid".into();
        settings.auth.role_claim = "https://example.com/role".into();
    });
    let app = app.await;
    let said = claims(json!({ "uid": "u-7", "role": "ADMIN", "https://example.com/role": "ANALYST" }));
    let caller = app.bearer(Signer::secret(SECRET).token(&said));
    assert_eq!(
        viewer(&caller).await,
        json!({ "role": "ANALYST", "user": { "id": "u-7" } })
    );
    let caller = app.bearer(Signer::secret(SECRET).token(&claims(json!({}))));
    assert_eq!(caller.post(VIEWER, json!({})).send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_of_dev_nobody_names_themselves() {
    let app = secret_app().await;
    let nobody = json!({ "role": "ANONYMOUS", "user": null });
    assert_eq!(viewer(&app.service()).await, nobody);
    assert_eq!(viewer(&app.user("amy")).await, nobody);
    let mut wire = Wire::open(&app.address(), app.service().claims()).await;
    wire.send(subscribe("1", VIEWER)).await;
    assert_eq!(wire.data("1").await["viewer"], nobody);
    // It is meant to be reached from elsewhere, through a proxy too.
    let request = app.anonymous().post(VIEWER, json!({}));
    let request = request
        .header("Host", "play.example")
        .header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(
        app.http()
            .get(app.url().replace("/graphql", "/dev/token?user=amy"))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_set_changes_while_the_server_runs_and_a_broken_one_changes_nothing() {
    let (old, new, curve) = (
        Signer::rsa().named("old"),
        Signer::rsa().named("new"),
        Signer::ec().named("curve"),
    );
    // Providers publish keys for other purposes beside those for signatures.
    let mut encrypts = Signer::rsa().named("encrypts").jwk();
    encrypts["use"] = "enc".into();
    let others = [
        encrypts,
        json!({ "kty": "OKP", "crv": "X448", "x": "AA", "kid": "x" }),
        json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA", "use": "sig" }),
        json!({ "kty": "oct", "k": "AA" }),
        json!({ "kty": "of tomorrow" }),
    ];
    let set = |keys: &[&Signer]| {
        let keys = keys.iter().map(|key| key.jwk());
        let keys: Vec<Value> = others.iter().cloned().chain(keys).collect();
        json!({ "keys": keys }).to_string()
    };
    let dir = TempDir::new().unwrap();
    let path = file(&dir, &set(&[&old]));
    let app = keyed_by(&path).await;
    let by = |key: &Signer| key.token(&claims(json!({})));
    let status = async |token: &str| {
        app.bearer(token)
            .post(VIEWER, json!({}))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!((status(&by(&old)).await, status(&by(&new)).await), (200, 401));

    fs::write(&path, set(&[&old, &new, &curve])).unwrap();
    eventually("the new keys", async || status(&by(&new)).await == 200).await;
    assert_eq!((status(&by(&old)).await, status(&by(&curve)).await), (200, 200));

    fs::write(&path, "{ \"keys\": [ { \"kty\": \"RSA\"").unwrap();
    let waited = tokio::time::Instant::now();
    while waited.elapsed() < Duration::from_secs(3) {
        assert_eq!(
            status(&by(&new)).await,
            200,
            "a broken file leaves the keys as they are"
        );
    }
    fs::remove_file(&path).unwrap();
    // A file that is put in its place, as orchestrators do it.
    let beside = dir.path().join("beside");
    fs::write(&beside, set(&[&curve, &new])).unwrap();
    fs::rename(&beside, &path).unwrap();
    eventually("the old key's end", async || status(&by(&old)).await == 401).await;
    assert_eq!((status(&by(&new)).await, status(&by(&curve)).await), (200, 200));

    let misnamed = Signer::rsa().named("new");
    assert_eq!(status(&by(&misnamed)).await, 401, "a name is no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_may_stand_one_after_another_in_pem_and_secrets_line_by_line() {
    let dir = TempDir::new().unwrap();
    let (rsa, curve) = (Signer::rsa(), Signer::ec());
    let app = keyed_by(&file(&dir, &format!("# ours\n{}\n{}", rsa.public, curve.public))).await;
    for signer in [&rsa, &curve] {
        assert_eq!(
            viewer(&app.bearer(signer.token(&claims(json!({}))))).await["role"],
            "USER"
        );
    }

    let dir = TempDir::new().unwrap();
    let (new, old) = (
        "the new secret of the tests, long enough",
        "the old secret of the tests, long enough",
    );
    let path = file(&dir, &format!("{new}\n{old}\n"));
    let app = spawn_app().guarded().at(NOW);
    let app = app
        .with(|settings| settings.auth.jwt_secret_file = path.to_str().unwrap().into())
        .await;
    let by = |secret: &str| Signer::secret(secret).token(&claims(json!({})));
    for secret in [new, old] {
        assert_eq!(viewer(&app.bearer(by(secret))).await["role"], "USER");
    }
    fs::write(&path, new).unwrap();
    let status = async |token: String| {
        app.bearer(token)
            .post(VIEWER, json!({}))
            .send()
            .await
            .unwrap()
            .status()
    };
    eventually("the old secret's end", async || status(by(old)).await == 401).await;
    assert_eq!(status(by(new)).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_token_expires_its_sockets_and_streams_end() {
    let app = secret_app().await;
    let signer = Signer::secret(SECRET);
    let short = app.bearer(signer.token(&claims(json!({ "exp": after(60) }))));
    let long = app.bearer(signer.token(&claims(json!({ "exp": after(600) }))));
    let mut staying = Wire::open(&app.address(), long.claims()).await;
    let mut sockets = Vec::new();
    for protocol in TRANSPORTS {
        let mut wire = Wire::connect(&app.address(), Some(protocol)).await;
        wire.init(short.claims()).await;
        let begin = if protocol == "graphql-ws" {
            "start"
        } else {
            "subscribe"
        };
        wire.send(json!({ "id": "1", "type": begin, "payload": { "query": TOP } }))
            .await;
        let first = wire.answer().await;
        assert_eq!(
            first["payload"]["data"]["leaderboardChanged"]["cause"], "SNAPSHOT",
            "{first}"
        );
        sockets.push(wire);
    }
    let mut streams = Vec::new();
    for accept in [
        "text/event-stream",
        "multipart/mixed;boundary=graphql;subscriptionSpec=1.0",
    ] {
        let mut stream = short
            .post(TOP, json!({}))
            .header("Accept", accept)
            .send()
            .await
            .unwrap();
        let mut read = String::new();
        while !read.contains("SNAPSHOT") {
            let chunk = timeout(PATIENCE, stream.chunk())
                .await
                .expect("nothing came")
                .unwrap()
                .unwrap();
            read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        streams.push(stream);
    }

    // The leeway is five seconds.
    app.clock.set(at("2027-03-01T08:01:04.999Z"));
    app.bearer(signer.token(&claims(json!({}))))
        .data(VIEWER, json!({}))
        .await;
    sockets[0].send(json!({ "type": "ping" })).await;
    assert_eq!(sockets[0].answer().await["type"], "pong", "it goes on until then");
    app.clock.set(at("2027-03-01T08:01:05Z"));
    for wire in &mut sockets {
        assert_eq!(
            wire.closed().await,
            (4403, "Forbidden: the token has expired".into())
        );
    }
    for stream in streams {
        let rest = timeout(PATIENCE, stream.text())
            .await
            .expect("it goes on")
            .unwrap();
        assert!(
            rest.contains("UNAUTHENTICATED") && rest.contains("the token has expired"),
            "{rest}"
        );
        assert!(
            rest.ends_with("event: complete\ndata:\n\n") || rest.ends_with("--graphql--\r\n"),
            "{rest:?}"
        );
    }
    staying.send(subscribe("1", VIEWER)).await;
    assert_eq!(staying.data("1").await["viewer"]["role"], "USER");
    let again = short.post(VIEWER, json!({})).send().await.unwrap();
    assert_eq!(again.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_could_not_tell_callers_apart_safely_does_not_start() {
    let dir = TempDir::new().unwrap();
    let refusal = async |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        settings.server.listen = "127.0.0.1:0".parse().unwrap();
        settings.server.data_dir = dir.path().join("data");
        change(&mut settings);
        match server::start(settings, Clock::manual(at(NOW)), false).await {
            Ok(running) => {
                running.stop().await;
                panic!("it started");
            }
            Err(error) => error.to_string(),
        }
    };
    assert!(refusal(&|_| {}).await.contains("auth.jwt_key_file"));
    let said = refusal(&|settings| settings.auth.jwt_secret = "hunter2hunter2".into()).await;
    assert!(
        said.contains("auth.jwt_secret: has 14 bytes") && said.contains("openssl rand"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    let weak = Signer::rsa_of(KeySize::Rsa2048);
    let p384 = "-----BEGIN PUBLIC KEY-----\nMHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEqoBqxKlHr8vJKBVGrFAFMNbvvdFAyPlm\n3QmfG6A2kVyPXYpD5DdXBYnzxNKQdqgDxT8oN3VZ2m2DwSSaZYjJWAJvV3Fhbvhg\nzQQHc4Gv2pxyHcKmBPTuz6jqzVYhKN7k\n-----END PUBLIC KEY-----\n";
    for (text, words) in [
        ("", "is neither PEM nor a JWKS"),
        ("hello", "is neither PEM nor a JWKS"),
        ("{", "is no JWKS"),
        ("{\"keys\": []}", "holds no key"),
        (weak.private.as_str(), "holds a private key"),
        (p384, "is not on the curve P-256"),
        (
            &json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0" }] }).to_string(),
            "no public key for RS256 or ES256",
        ),
        (
            &json!({ "keys": [{ "kty": "RSA", "n": "AQAB", "e": "AQAB" }] }).to_string(),
            "less than 2,048 bits",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "holds a CERTIFICATE",
        ),
    ] {
        let path = file(&dir, text);
        let said = refusal(&|settings| settings.auth.jwt_key_file = path.to_str().unwrap().into()).await;
        assert!(
            said.starts_with("auth.jwt_key_file: ") && said.contains(words),
            "{text}: {said}"
        );
    }
    let said = refusal(&|settings| settings.auth.jwt_key_file = "/nowhere/at/all".into()).await;
    assert!(said.contains("/nowhere/at/all cannot be read"), "{said}");
    assert!(!dir.path().join("data").exists(), "nothing was begun");
}
