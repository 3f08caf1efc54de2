//! The program as an operator meets it: its commands, its refusals, its start and its end.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::harness::*;

const BOARD: &str = "[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\nmax_points = 1_000_000\n";

#[tokio::test(flavor = "multi_thread")]
async fn it_says_one_line_when_ready_and_the_clock_runs_on_from_its_instant() {
    let place = Place::new(BOARD);
    let mut command = place.serve();
    command.args(["--now", "2027-03-01T23:59:59Z"]);
    let server = Server::start(command);
    // The only real second here: that time passes by itself is the point.
    eventually("the next day", async || {
        let day = server
            .ask(("X-Dev-User", "amy"), "{ businessDay { date } }")
            .await;
        day["data"]["businessDay"]["date"] == "2027-03-02"
    })
    .await;
    let ended = server.end("TERM");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stderr.contains("business days are in force"), "{ended:?}");
    assert!(!ended.stderr.contains('\u{1b}'), "colours in a file: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn either_signal_ends_it_in_order_and_leaves_no_process_and_no_socket() {
    let place = Place::new(BOARD);
    for (signal, points) in [("TERM", 5), ("INT", 10)] {
        let server = Server::start(place.serve());
        assert_eq!(
            server.score("points", "amy", 5).await["ALL_TIME"],
            points,
            "the data stayed"
        );
        let redis = place.redis_pid().unwrap();
        let socket = fs::read_to_string(place.data().join("redis.socket")).unwrap();
        assert!(is_alive(redis) && Path::new(&socket).exists());

        assert_eq!(server.end(signal).code, Some(0));
        assert!(!is_alive(redis), "Redis outlived its server");
        assert!(!Path::new(&socket).exists(), "{socket} is left");
        assert!(!place.data().join("redis.socket").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_takes_long_can_be_given_up() {
    let place = Place::new(BOARD);
    // A Redis with much to load: it runs, and takes no commands yet.
    let bin = place.dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Redis server v=7.0.15'; exit; }\n\
                  echo $$ >redis.pid.new\nmv redis.pid.new \"$PWD/../loading\"\nexec sleep 60\n";
    let script = script.replace("echo $$ >", "cd \"$(dirname \"$0\")\"\necho $$ >");
    let program = bin.join("redis-server");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut child = place
        .serve()
        .env("PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let note = place.dir.path().join("loading");
    eventually("the slow Redis", async || note.exists()).await;
    let redis: u32 = fs::read_to_string(&note).unwrap().trim().parse().unwrap();

    signal("INT", child.id());
    eventually("its end", async || child.try_wait().unwrap().is_some()).await;
    assert_eq!(child.wait().unwrap().code(), Some(0));
    eventually("the end of the slow Redis", async || !is_alive(redis)).await;
    assert!(!place.data().join("redis.socket").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_the_next_start_takes_the_orphaned_redis_over_with_its_data() {
    let place = Place::new(BOARD);
    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    let orphan = place.redis_pid().unwrap();
    assert_eq!(server.end("KILL").code, None);
    assert!(
        works_in(orphan, &place),
        "killed with its server, it is no orphan"
    );

    let server = Server::start(place.serve());
    assert_eq!(server.points("points", "amy").await, 5);
    assert_eq!(server.score("points", "amy", 2).await["ALL_TIME"], 7);
    assert!(!works_in(orphan, &place));
    assert_eq!(server.end("TERM").code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_would_misread_the_data_are_refused_and_the_data_stay_as_they_were() {
    let place = Place::new(BOARD);
    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    assert_eq!(server.end("TERM").code, Some(0));

    for (config, said) in [
        (
            BOARD.replace("1_000_000", "2_000_000"),
            "board points, max_points = 1000000, but the configuration says 2000000",
        ),
        (
            format!("[redis]\npartitions = 8\n{BOARD}"),
            "redis.partitions = 1, but the configuration says 8",
        ),
        (
            format!("[day]\ntime_zone = \"Asia/Kolkata\"\n{BOARD}"),
            "day.starts_at) = UTC 00:00, but the configuration says Asia/Kolkata 00:00",
        ),
        (
            format!("[day]\nstarts_at = \"04:00\"\n{BOARD}"),
            "day.starts_at) = UTC 00:00, but the configuration says UTC 04:00",
        ),
        (
            format!("{BOARD}order = \"LOWEST_FIRST\"\n"),
            "board points, order = HIGHEST_FIRST, but the configuration says LOWEST_FIRST",
        ),
        (
            format!("{BOARD}tie_break = \"NONE\"\n"),
            "board points, ALL_TIME = 33 bits of 236 ms, but the configuration says 0 bits of 1 ms",
        ),
    ] {
        place.configure(&config);
        let refused = run(&mut place.serve());
        let message = refused.refusal();
        assert!(message.contains(said), "{message}");
        assert!(
            message.contains("Set it back, or start with an empty data directory"),
            "{message}"
        );
        assert_eq!(place.redis_pid(), None, "a refused start left its Redis");
    }

    place.configure(BOARD);
    let server = Server::start(place.serve());
    assert_eq!(server.points("points", "amy").await, 5);
    assert_eq!(server.score("points", "amy", 1).await["ALL_TIME"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_data_depend_on_may_change() {
    let place = Place::new(BOARD);
    assert_eq!(Server::start(place.serve()).end("TERM").code, Some(0));

    // Nobody has written: the day may change. Nobody has scored on the second board: its plan may.
    let kolkata = format!("[day]\ntime_zone = \"Asia/Kolkata\"\n{BOARD}");
    let second = "[[board]]\nid = \"second\"\nperiods = [\"ALL_TIME\"]\nmax_points = 100\n";
    place.configure(&format!("{kolkata}{second}"));
    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    let day = server
        .ask(("X-Dev-User", "amy"), "{ businessDay { timeZone } }")
        .await;
    assert_eq!(day["data"]["businessDay"]["timeZone"], "Asia/Kolkata");
    assert_eq!(server.end("TERM").code, Some(0));

    place.configure(&format!("{kolkata}{}", second.replace("100", "200")));
    let server = Server::start(place.serve());
    server.score("second", "amy", 150).await;
    assert_eq!(server.end("TERM").code, Some(0));

    // A title, a new period and a new board beside data.
    let more =
        format!("{kolkata}title = \"All of them\"\n").replace("[\"ALL_TIME\"]", "[\"ALL_TIME\", \"MONTH\"]");
    place.configure(&format!("{more}[[board]]\nid = \"third\"\n"));
    let server = Server::start(place.serve());
    let boards = server.ask(("X-Dev-User", "amy"), "{ boards { id title } }").await;
    assert_eq!(boards["data"]["boards"][0]["title"], "All of them", "{boards}");
    let points = server.score("points", "amy", 1).await;
    assert_eq!(points, serde_json::json!({ "ALL_TIME": 6, "MONTH": 1 }));
    server.score("third", "amy", 1).await;
    assert_eq!(server.end("TERM").code, Some(0));

    // A board and a period that were left out for a while are there again, and still may not change.
    place.configure(&kolkata);
    assert_eq!(Server::start(place.serve()).end("TERM").code, Some(0));
    place.configure(&format!("{more}{}", second.replace("100", "300")));
    let refused = run(&mut place.serve());
    assert!(
        refused.refusal().contains("board second, max_points = 200"),
        "{refused:?}"
    );
    place.configure(&more);
    let server = Server::start(place.serve());
    assert_eq!(
        server.score("points", "amy", 1).await,
        serde_json::json!({ "ALL_TIME": 7, "MONTH": 2 })
    );
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_its_place_and_what_would_be_right() {
    let place = Place::new("");
    let file = place.config();
    let file = file.to_str().unwrap();
    let check = |config: &str, said: &[&str]| {
        place.configure(config);
        for command in [
            &["config", "check", "--config"][..],
            &["serve", "--dev", "--config"],
        ] {
            let refused = run(tallyboard(command).arg(file).arg("--data-dir").arg(place.data()));
            for said in said {
                assert!(refused.refusal().contains(said), "{said:?} is not in {refused:?}");
            }
        }
        assert!(
            !place.data().exists(),
            "a refused configuration made the data directory"
        );
    };
    check("[day\n", &[file, "line 1, column 5", "invalid table header"]);
    check(
        "[day]\nzone = \"UTC\"\n",
        &[
            file,
            "day.zone: there is no such setting; there are time_zone, starts_at",
        ],
    );
    check(
        "[boards]\n",
        &[file, "boards: there is no such setting; there are server, redis,"],
    );
    check(
        "[redis]\ntimeout_ms = \"soon\"\n",
        &[
            file,
            "redis.timeout_ms: found \"soon\" where a whole number belongs",
        ],
    );
    check(
        "[[board]]\nid = \"x\"\ntie_break = \"none\"\n",
        &[file, "tie_break: \"none\" is none of FIRST_TO_REACH, NONE"],
    );
    check("board = 7\n", &[file, "board: found 7 where a list belongs"]);
    check(
        "[day]\ntime_zone = \"Mars\"\n",
        &["day.time_zone: \"Mars\" is no IANA time zone; Europe/Berlin or UTC would be"],
    );
    check(
        "[day]\nstarts_at = \"25:00\"\n",
        &["day.starts_at: \"25:00\" is no time of day; 04:00 would be"],
    );
    check(
        "[redis]\npartitions = 3\n",
        &["redis.partitions: 3 is not a power of two from 1 to 1024"],
    );
    check(
        "[redis]\nurl = \"redis://a:1,redis://b:1\"\n",
        &["redis.url: several nodes (Redis Cluster) are not supported yet; name one"],
    );
    check(
        "[server]\nbase_path = \"tally/\"\n",
        &["server.base_path: \"tally/\" is no path; \"/\" or \"/tally\" would be"],
    );
    check(
        "[server]\nmetrics_listen = \"9090\"\n",
        &["server.metrics_listen: \"9090\" is no address and port; 127.0.0.1:9090 would be"],
    );
    check(
        "[server]\ntrusted_proxies = [\"10.0.0.0/33\"]\n",
        &["server.trusted_proxies: \"10.0.0.0/33\" is no network"],
    );
    check(
        "[server]\ncors_origins = [\"app.example\"]\n",
        &["server.cors_origins: \"app.example\" is no origin; https://app.example would be"],
    );
    check("[[board]]\n", &["board.id"]);
    check(
        "[presence]\nmode = \"count\"\nwindow_seconds = 90\n",
        &["presence.window_seconds: 90 is not within 60 to 3600 in whole minutes"],
    );
    check(
        "[presence]\nmax_rooms_per_user = 0\n",
        &["presence.max_rooms_per_user: 0 is not within 1 to 1000"],
    );
    check(
        "[checkin]\npoints_board = \"nowhere\"\n",
        &["checkin.points_board: there is no board \"nowhere\""],
    );
    check(
        "[checkin]\npoints_board = \"fed\"\ncount_board = \"fed\"\n[[board]]\nid = \"fed\"\n",
        &[
            "checkin.count_board: board fed is checkin.points_board already",
            "name another board",
        ],
    );
}

#[test]
fn an_impossible_board_is_refused_with_numbers_that_would_do() {
    let board = |max_points: &str, more: &str| {
        format!("[[board]]\nid = \"big\"\nperiods = [\"ALL_TIME\"]\nmax_points = {max_points}\n{more}")
    };
    let place = Place::new(&board("1_000_000_000_000", ""));
    let check = || run(tallyboard(&["config", "check", "--config"]).arg(place.config()));
    let refused = check();
    let message = refused.refusal();
    let number_after = |words: &str| {
        let (_, rest) = message
            .split_once(words)
            .unwrap_or_else(|| panic!("{words} is not in {message}"));
        rest.split(',').next().unwrap().trim().to_owned()
    };
    assert!(
        message.starts_with("board big: ALL_TIME cannot tell"),
        "{message}"
    );
    assert!(message.contains("tie_break = \"NONE\""), "{message}");
    // Each of them does.
    for config in [
        board(&number_after("max_points up to "), ""),
        board(
            "1_000_000_000_000",
            &format!("max_tick_ms = {}\n", number_after("max_tick_ms from ")),
        ),
        board("1_000_000_000_000", "tie_break = \"NONE\"\n"),
    ] {
        place.configure(&config);
        let checked = check();
        assert_eq!(checked.code, Some(0), "{config}: {checked:?}");
    }
}

#[test]
fn variables_win_over_the_file_and_a_bad_one_is_refused_by_its_name() {
    let place = Place::new("[day]\ntime_zone = \"UTC\"\n");
    let check = |name: &str, value: &str| {
        run(tallyboard(&["config", "check", "--config"])
            .arg(place.config())
            .env(name, value))
    };
    let checked = check("TALLYBOARD_DAY__TIME_ZONE", "Asia/Kolkata");
    assert!(checked.stdout.contains("days: Asia/Kolkata"), "{checked:?}");
    for (name, value, said) in [
        (
            "TALLYBOARD_REDIS__TIMEOUT_MS",
            "soon",
            "found \"soon\" where a whole number belongs",
        ),
        (
            "TALLYBOARD_REDIS__TIMEOUT",
            "5",
            "there is no such setting; there are url, prefix,",
        ),
        (
            "TALLYBOARD_ZONE",
            "UTC",
            "there is no such setting; there are server,",
        ),
        (
            "TALLYBOARD_REDIS__DURABILITY",
            "never",
            "\"never\" is none of always, everysec",
        ),
        ("TALLYBOARD_REDIS__PREFIX", "42", "is text; write it as '\"42\"'"),
        (
            "TALLYBOARD_BOARD",
            "points",
            "found \"points\" where a list belongs",
        ),
    ] {
        let refused = check(name, value);
        let message = refused.refusal();
        assert!(message.starts_with(&format!("{name}: {said}")), "{message}");
    }
    let quoted = check("TALLYBOARD_REDIS__PREFIX", "\"42\"");
    assert_eq!(quoted.code, Some(0), "{quoted:?}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let place = Place::new("");
    for path in [place.dir.path().join("nowhere.toml"), place.dir.path().to_owned()] {
        let refused = run(tallyboard(&["config", "check", "--config"]).arg(&path));
        let said = format!("there is no configuration file {}", path.display());
        assert_eq!(refused.refusal(), said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_or_a_port_that_cannot_be_had_is_refused_with_the_reason() {
    let place = Place::new(BOARD);
    let below_a_file = place.config().join("below");
    let mut command = tallyboard(&["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir"]);
    let refused = run(command.arg(&below_a_file));
    let said = format!("cannot use {} as the data directory", below_a_file.display());
    assert!(refused.refusal().starts_with(&said), "{refused:?}");

    // Not even root writes here.
    let refused = run(&mut tallyboard(&[
        "serve",
        "--dev",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        "/proc/self/fd",
    ]));
    let message = refused.refusal();
    assert!(
        message.starts_with("cannot write in the data directory"),
        "{message}"
    );
    assert!(message.contains("must belong to the user"), "{message}");

    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    let refused = run(&mut place.serve());
    let said = format!("in use by process {}; stop that one, or give", server.pid());
    assert!(refused.refusal().contains(&said), "{refused:?}");

    let other = Place::new(BOARD);
    let mut command = tallyboard(&["serve", "--dev", "--listen", server.address(), "--data-dir"]);
    let refused = run(command.arg(other.data()));
    let message = refused.refusal();
    let said = format!("cannot listen on {}: Address already in use", server.address());
    assert!(message.starts_with(&said), "{message}");
    assert!(message.contains("choose another with --listen"), "{message}");
    assert!(!other.data().exists());

    assert_eq!(
        server.points("points", "amy").await,
        5,
        "the others did not disturb it"
    );
    assert_eq!(server.end("TERM").code, Some(0));
}

#[test]
fn without_a_way_to_sign_in_it_serves_in_development_on_this_machine_only() {
    let place = Place::new(BOARD);
    let refused = run(tallyboard(&["serve", "--data-dir"]).arg(place.data()));
    assert!(refused.refusal().starts_with("serve needs a key"), "{refused:?}");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"] {
        let refused =
            run(tallyboard(&["serve", "--dev", "--listen", address, "--data-dir"]).arg(place.data()));
        let message = refused.refusal();
        assert!(
            message.contains(&format!(
                "loopback only, and server.listen is {address}; 127.0.0.1:8080 would do"
            )),
            "{message}"
        );
    }
    assert!(!place.data().exists());
}

#[test]
fn flags_that_make_no_sense_are_a_usage_error() {
    for (args, said) in [
        (&["serve", "--now", "2027-03-01T00:00:00Z"][..], "--dev"),
        (
            &["serve", "--dev", "--now", "tomorrow"],
            "invalid value 'tomorrow' for '--now <INSTANT>'",
        ),
        (
            &["serve", "--dev", "--listen", "here"],
            "invalid value 'here' for '--listen <ADDRESS>'",
        ),
        (&["serve", "--port", "80"], "unexpected argument '--port'"),
        (&["import", "scores", "file.csv"], "--board <BOARD>"),
        (&["import"], "Usage: tallyboard import <COMMAND>"),
        (&["party"], "unrecognized subcommand 'party'"),
        (&[], "Usage: tallyboard <COMMAND>"),
    ] {
        let outcome = run(&mut tallyboard(args));
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (Some(2), ""),
            "{outcome:?}"
        );
        assert!(outcome.stderr.contains(said), "{outcome:?}");
    }
}

#[test]
fn a_redis_that_is_none_or_too_old_is_refused_by_its_address() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed at once
    let foreign = answering(|_| "HTTP/1.1 400 Bad Request\r\n\r\n".into());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let locked = answering(|_| "-NOAUTH Authentication required.\r\n".into());
    let old = answering(|command| match command {
        "INFO" => "$25\r\nredis_version:6.2.14\r\nx:1\r\n".into(),
        "PING" => "+PONG\r\n".into(),
        _ => "*0\r\n".into(),
    });
    let silent_address = silent.local_addr().unwrap();
    let cases = [
        (
            format!("redis://{nobody}"),
            format!("no Redis at {nobody}: Connection refused"),
        ),
        (
            format!("redis://{foreign}"),
            format!("no Redis at {foreign}: what answers there is no Redis"),
        ),
        (
            format!("redis://{silent_address}"),
            format!("no Redis at {silent_address}: "),
        ),
        (
            format!("redis://{locked}"),
            format!("no Redis at {locked}: NOAUTH"),
        ),
        (
            format!("redis://{old}"),
            format!("the Redis at {old} cannot be used: its version is 6.2.14, and 7.0 or newer is needed"),
        ),
        (
            "redis://user:secret@:x".into(),
            "redis.url is no address of a Redis".into(),
        ),
        ("elsewhere".into(), "redis.url is no address of a Redis".into()),
    ];
    // Side by side: each waits a few seconds before it gives up.
    std::thread::scope(|scope| {
        for (url, said) in &cases {
            scope.spawn(move || {
                let refused = run(tallyboard(&["serve", "--dev", "--listen", "127.0.0.1:0"])
                    .env("TALLYBOARD_REDIS__URL", url));
                let message = refused.refusal();
                assert!(message.starts_with(said.as_str()), "{url}: {message}");
                assert!(message.contains("redis"), "it does not say what to do: {message}");
                assert!(!refused.stderr.contains("secret"), "{refused:?}");
            });
        }
    });
}

/// A listener that answers each command, or whatever it takes for one, by its name; it ends with the test.
fn answering(answer: fn(&str) -> String) -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut line = String::new();
                let mut next = || {
                    line.clear();
                    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
                    Some(line.trim().to_owned())
                };
                // *<words> then for each: $<length>, word
                while let Some(words) = next() {
                    let count = words.trim_start_matches('*').parse().unwrap_or(1);
                    let words: Vec<_> = (0..count).map_while(|_| next().and_then(|_| next())).collect();
                    let name = words.first().cloned().unwrap_or_default();
                    if stream.write_all(answer(&name.to_uppercase()).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn the_schema_is_the_one_in_the_repository() {
    let printed = run(&mut tallyboard(&["schema"]));
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    assert!(
        printed.stdout == fs::read_to_string(root().join("schema.graphql")).unwrap(),
        "`make schema` writes it anew"
    );
    // A reader that has seen enough is no reason to panic.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = tallyboard(&["schema"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn();
    let ended = child.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        said.starts_with("tallyboard: cannot write to standard output"),
        "{said}"
    );
}

#[test]
fn config_check_prints_how_each_board_is_kept() {
    let place = Place::new(
        "[day]\ntime_zone = \"Europe/Berlin\"\nstarts_at = \"04:00\"\n\
         [[board]]\nid = \"points\"\ntitle = \"Points\"\n\
         [[board]]\nid = \"laps\"\norder = \"LOWEST_FIRST\"\noperator = \"BEST\"\ntie_break = \"NONE\"\n\
         periods = [\"WEEK\"]\nmax_points = 3_600_000\n",
    );
    let checked = run(tallyboard(&["config", "check", "--config"]).arg(place.config()));
    let wanted = format!(
        "{}: good\n\
         days: Europe/Berlin, each from 04:00\n\
         tokens: no key, so it serves in --dev only\n\
         board points: \"Points\", points within 10000000 either way\n\
         \x20 DAY       first to reach, told apart by 1 ms (29 bits)\n\
         \x20 WEEK      first to reach, told apart by 2 ms (29 bits)\n\
         \x20 MONTH     first to reach, told apart by 5 ms (29 bits)\n\
         \x20 ALL_TIME  first to reach, told apart by 3763 ms (29 bits)\n\
         board laps: \"laps\", points within 3600000 either way\n\
         \x20 WEEK      equal points stand by user id\n",
        place.config().display()
    );
    assert_eq!(
        (checked.code, checked.stdout.as_str(), checked.stderr.as_str()),
        (Some(0), wanted.as_str(), "")
    );
    assert!(!place.data().exists());

    let defaults = run(&mut tallyboard(&["config", "check"]));
    assert_eq!(
        defaults.stdout,
        "the defaults: good\ndays: UTC, each from 00:00\ntokens: no key, so it serves in --dev only\nboards: none\n"
    );
}

#[test]
fn the_example_and_the_demo_are_good() {
    let example = root().join("docs/tallyboard.example.toml");
    for file in [example, root().join("demo/tallyboard.toml")] {
        let checked = run(tallyboard(&["config", "check", "--config"]).arg(&file));
        assert_eq!(
            (checked.code, checked.stderr.as_str()),
            (Some(0), ""),
            "{checked:?}"
        );
    }
}

#[test]
fn every_command_explains_itself() {
    for args in [
        &[][..],
        &["serve"],
        &["token"],
        &["schema"],
        &["config"],
        &["config", "check"],
        &["import"],
        &["import", "check-ins"],
        &["import", "scores"],
    ] {
        let help = run(tallyboard(args).arg("--help"));
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{help:?}");
        assert!(help.stdout.contains("Usage: tallyboard"), "{help:?}");
        // No flag, argument or command stands there without a word on it.
        let lines: Vec<_> = help.stdout.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let named = line.trim_start();
            if named.starts_with("--") || named.starts_with('<') {
                let said = line.trim_end().contains("  ") && named.contains("  ");
                let below = lines
                    .get(i + 1)
                    .is_some_and(|next| next.starts_with("          "));
                assert!(said || below, "{args:?}: {line:?} is not explained");
            }
        }
    }
    let version = run(&mut tallyboard(&["--version"]));
    assert_eq!(
        version.stdout,
        format!("tallyboard {}\n", env!("CARGO_PKG_VERSION"))
    );
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether that Redis still runs on the place's data: a process that has ended may stay listed for a while.
fn works_in(pid: u32, place: &Place) -> bool {
    let home = place.data().join("redis").canonicalize().unwrap();
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == home)
}
