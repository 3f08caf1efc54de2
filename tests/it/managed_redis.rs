//! The data directory and the private redis-server in it: started, killed, orphaned, taken over, stopped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult, cmd};
use tallyboard::keyspace::data_dir::{DataDir, DataDirError};
use tallyboard::keyspace::managed::{
    self, Durability, ManagedError, ManagedRedis, running_socket, socket_path,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

#[test]
fn a_second_lock_is_refused_and_names_the_holder() {
    let place = TempDir::new().unwrap();
    let held = DataDir::lock(place.path()).unwrap();

    let refusal = DataDir::lock(place.path()).unwrap_err().to_string();
    assert!(
        refusal.contains(&format!(
            "in use by process {}; stop that one",
            std::process::id()
        )),
        "{refusal}"
    );

    drop(held);
    DataDir::lock(place.path()).unwrap();
}

#[test]
fn a_missing_data_directory_is_made_for_this_user_only() {
    let place = TempDir::new().unwrap();
    let data_dir = DataDir::lock(&place.path().join("srv/tallyboard")).unwrap();
    assert_eq!(
        data_dir.path(),
        place.path().canonicalize().unwrap().join("srv/tallyboard")
    );
    assert_eq!(mode(data_dir.path()), 0o700);
}

#[test]
fn a_data_directory_that_cannot_be_is_refused_by_its_path() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refusal = DataDir::lock(&path).unwrap_err();
        assert!(matches!(refusal, DataDirError::Unusable { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains(path.to_str().unwrap()), "{refusal}");
    }
}

#[test]
fn a_data_directory_that_takes_no_files_is_refused() {
    // Not even root writes here.
    let refusal = DataDir::lock(Path::new("/proc/self/fd")).unwrap_err();
    assert!(matches!(refusal, DataDirError::Unwritable { .. }), "{refusal:?}");
}

#[test]
fn the_socket_is_short_private_and_the_same_for_every_spelling_of_the_directory() {
    let place = TempDir::new().unwrap();
    let long = place.path().join("long".repeat(50));
    fs::create_dir(&long).unwrap();
    symlink(&long, place.path().join("link")).unwrap();

    let socket = socket_path(&long).unwrap();
    assert_eq!(socket_path(&place.path().join("link/.")).unwrap(), socket);
    assert_ne!(socket_path(place.path()).unwrap(), socket);
    assert!(socket.as_os_str().len() <= 107);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
}

#[tokio::test]
async fn it_starts_as_configured_and_leaves_nothing_behind_when_stopped() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    let (pid, socket) = (redis.pid().unwrap(), redis.socket().to_owned());
    assert_eq!(running_socket(place.path()).as_ref(), Some(&socket));
    assert_eq!(mode(&socket), 0o700);
    for (setting, wanted) in [
        ("port", "0"),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("save", ""),
        ("maxmemory-policy", "noeviction"),
        ("hash-max-listpack-value", "128"),
    ] {
        let (_, found): (String, String) = cmd("CONFIG")
            .arg("GET")
            .arg(setting)
            .query_async(&mut connect(&socket).await)
            .await
            .unwrap();
        assert_eq!(found, wanted, "{setting}");
    }
    // A Ctrl-C goes to the terminal's process group, and must leave Redis to us.
    assert_eq!(process_group(pid), pid);

    redis.stop().await;
    assert!(ended_in_order(place.path()));
    assert!(!is_alive(pid));
    assert!(!socket.exists());
    assert_eq!(running_socket(place.path()), None);
    let mut left: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["lock", "redis"]);
    DataDir::lock(place.path()).unwrap();
}

#[tokio::test]
async fn data_survive_a_stop_and_a_start_with_either_durability() {
    for durability in [Durability::Always, Durability::EverySec] {
        let place = TempDir::new().unwrap();
        let data_dir = DataDir::lock(place.path()).unwrap();
        let redis = managed::start(&data_dir, durability).await.unwrap();
        write(redis.socket(), "streak", "7").await;
        redis.stop().await;

        let redis = managed::start(&data_dir, durability).await.unwrap();
        assert_eq!(read(redis.socket(), "streak").await.as_deref(), Some("7"));
        redis.stop().await;
    }
}

#[tokio::test]
async fn a_killed_redis_comes_back_with_its_data_again_and_again() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    write(redis.socket(), "streak", "7").await;

    for _ in 0..3 {
        let killed = redis.pid().unwrap();
        signal("KILL", killed);
        eventually("a new process", async || {
            redis.pid().is_some_and(|pid| pid != killed)
        })
        .await;
        assert_eq!(read(redis.socket(), "streak").await.as_deref(), Some("7"));
    }
    let last = redis.pid().unwrap();
    redis.stop().await;
    assert!(!is_alive(last));
}

#[tokio::test]
async fn a_stop_right_after_a_kill_leaves_no_process() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    signal("KILL", redis.pid().unwrap());
    redis.stop().await;
    assert_eq!(redis_on(place.path()), None);
}

#[tokio::test]
async fn dropped_it_is_killed_and_only_then_is_the_directory_free() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    let (pid, socket) = (redis.pid().unwrap(), redis.socket().to_owned());
    assert!(matches!(
        DataDir::lock(place.path()),
        Err(DataDirError::Held { .. })
    ));

    drop(redis);
    eventually("the lock", async || DataDir::lock(place.path()).is_ok()).await;
    assert!(!is_alive(pid));
    assert!(!socket.exists());
}

#[tokio::test]
async fn caught_in_an_endless_script_it_still_stops_with_its_data() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    let socket = redis.socket().to_owned();
    write(&socket, "streak", "7").await;
    let mut connection = connect(&socket).await;
    let patience = cmd("CONFIG")
        .arg("SET")
        .arg("busy-reply-threshold")
        .arg(10)
        .to_owned();
    patience.exec_async(&mut connection).await.unwrap();
    let endless = tokio::spawn(async move {
        cmd("EVAL")
            .arg("while true do end")
            .arg(0)
            .exec_async(&mut connection)
            .await
    });
    eventually("a busy Redis", async || {
        ping(&socket).await.is_err_and(|e| e.code() == Some("BUSY"))
    })
    .await;

    redis.stop().await;
    assert!(ended_in_order(place.path()));
    assert!(endless.await.unwrap().is_err());
    let redis = start(place.path()).await;
    assert_eq!(read(redis.socket(), "streak").await.as_deref(), Some("7"));
    redis.stop().await;
}

#[tokio::test]
async fn one_that_cannot_read_its_files_says_why_and_gives_the_directory_back() {
    let place = TempDir::new().unwrap();
    let redis = start(place.path()).await;
    write(redis.socket(), "streak", "7").await;
    redis.stop().await;
    for entry in fs::read_dir(place.path().join("redis/appendonlydir")).unwrap() {
        fs::write(entry.unwrap().path(), "no append-only file\n").unwrap();
    }

    let data_dir = DataDir::lock(place.path()).unwrap();
    let error = managed::start(&data_dir, Durability::Always).await.unwrap_err();
    assert!(matches!(error, ManagedError::Ended { .. }), "{error:?}");
    assert!(error.to_string().contains("AOF"), "{error}");
    assert_eq!(redis_on(place.path()), None);
    drop(data_dir);
    DataDir::lock(place.path()).unwrap();
}

#[tokio::test]
async fn what_a_kill_left_half_written_is_swept_away() {
    let place = TempDir::new().unwrap();
    let half_written = place.path().join("redis/temp-rewriteaof-bg-4711.aof");
    fs::create_dir(half_written.parent().unwrap()).unwrap();
    fs::write(&half_written, "half a rewrite").unwrap();
    start(place.path()).await.stop().await;
    assert!(!half_written.exists());
}

#[tokio::test]
async fn an_orphan_is_ended_and_its_data_taken_over() {
    let place = TempDir::new().unwrap();
    let orphan = Orphan::on(place.path(), &socket_path(place.path()).unwrap()).await;
    write(&orphan.socket, "streak", "7").await;

    let redis = start(place.path()).await;
    assert_ne!(redis.pid(), Some(orphan.process.id()));
    orphan.has_ended_in_order().await;
    assert_eq!(read(redis.socket(), "streak").await.as_deref(), Some("7"));
    redis.stop().await;
}

#[tokio::test]
async fn an_orphan_that_listens_elsewhere_is_found_by_what_its_server_wrote_down() {
    let place = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    let ours = socket_path(place.path()).unwrap();
    let theirs = elsewhere.path().join(ours.file_name().unwrap());
    let orphan = Orphan::on(place.path(), &theirs).await;
    fs::write(place.path().join("redis.socket"), theirs.to_str().unwrap()).unwrap();
    assert_eq!(running_socket(place.path()).as_ref(), Some(&theirs));

    let redis = start(place.path()).await;
    orphan.has_ended_in_order().await;
    assert_eq!(running_socket(place.path()), Some(ours));
    redis.stop().await;
}

#[tokio::test]
async fn a_frozen_orphan_is_left_alone_and_named() {
    let place = TempDir::new().unwrap();
    let orphan = Orphan::on(place.path(), &socket_path(place.path()).unwrap()).await;
    signal("STOP", orphan.process.id());
    assert_unresponsive(place.path(), &orphan).await;
}

#[tokio::test]
async fn an_orphan_that_lost_its_socket_is_noticed_before_two_write_the_same_files() {
    let place = TempDir::new().unwrap();
    let orphan = Orphan::on(place.path(), &socket_path(place.path()).unwrap()).await;
    fs::remove_file(&orphan.socket).unwrap();
    assert_unresponsive(place.path(), &orphan).await;
}

#[tokio::test]
async fn a_redis_with_other_data_is_left_alone() {
    let (place, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let stranger = Orphan::on(other.path(), &socket_path(place.path()).unwrap()).await;

    let data_dir = DataDir::lock(place.path()).unwrap();
    let error = managed::start(&data_dir, Durability::Always).await.unwrap_err();
    assert!(matches!(error, ManagedError::Foreign { .. }), "{error:?}");
    ping(&stranger.socket).await.unwrap();
}

#[tokio::test]
async fn a_copy_of_a_data_directory_does_not_lead_to_the_originals_redis() {
    let (place, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let original = start(place.path()).await;
    fs::copy(
        place.path().join("redis.socket"),
        copy.path().join("redis.socket"),
    )
    .unwrap();
    assert_eq!(running_socket(copy.path()), None);

    let copied = start(copy.path()).await;
    ping(original.socket()).await.unwrap();
    assert_ne!(copied.socket(), original.socket());
    copied.stop().await;
    original.stop().await;
}

#[tokio::test]
async fn a_stale_socket_is_no_hindrance() {
    let place = TempDir::new().unwrap();
    let socket = socket_path(place.path()).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    fs::write(place.path().join("redis.socket"), socket.to_str().unwrap()).unwrap();
    assert!(socket.exists());
    assert_eq!(running_socket(place.path()), None);

    let redis = start(place.path()).await;
    ping(&socket).await.unwrap();
    redis.stop().await;
}

/// Locks and starts. The lock stays with the private Redis alone.
async fn start(place: &Path) -> ManagedRedis {
    managed::start(&DataDir::lock(place).unwrap(), Durability::Always)
        .await
        .unwrap()
}

async fn assert_unresponsive(place: &Path, orphan: &Orphan) {
    let data_dir = DataDir::lock(place).unwrap();
    let error = managed::start(&data_dir, Durability::Always).await.unwrap_err();
    let pid = orphan.process.id();
    assert!(matches!(error, ManagedError::Unresponsive { .. }), "{error:?}");
    let advice = format!("(process {pid}) does not answer; end it with `kill -9`");
    assert!(error.to_string().contains(&advice), "{error}");
    assert_eq!(redis_on(place), Some(pid));
}

/// A redis-server such as a killed server leaves behind. Ends with the test.
struct Orphan {
    process: Child,
    socket: PathBuf,
}

impl Orphan {
    async fn on(place: &Path, socket: &Path) -> Orphan {
        let home = place.join("redis");
        fs::create_dir(&home).unwrap();
        let process = Command::new("redis-server")
            .args("--port 0 --unixsocketperm 700 --appendonly yes --appendfsync everysec".split(' '))
            .args(["--save", "", "--dir"])
            .arg(&home)
            .arg("--pidfile")
            .arg(home.join("redis.pid"))
            .arg("--unixsocket")
            .arg(socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let orphan = Orphan {
            process,
            socket: socket.to_owned(),
        };
        connect(socket).await;
        orphan
    }

    async fn has_ended_in_order(mut self) {
        eventually("its end", async || self.process.try_wait().unwrap().is_some()).await;
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        // Once it has ended, its socket is its successor's.
        if let Ok(None) = self.process.try_wait() {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
            fs::remove_file(&self.socket).ok();
        }
    }
}

async fn try_connect(socket: &Path) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let client = Client::open(ConnectionAddr::Unix(socket.to_owned()))?;
    client.get_multiplexed_async_connection_with_config(&config).await
}

async fn ping(socket: &Path) -> RedisResult<()> {
    cmd("PING").exec_async(&mut try_connect(socket).await?).await
}

/// A connection to a Redis that may only just have been started.
async fn connect(socket: &Path) -> MultiplexedConnection {
    eventually("an answer to PING", async || ping(socket).await.is_ok()).await;
    try_connect(socket).await.unwrap()
}

async fn write(socket: &Path, key: &str, value: &str) {
    cmd("SET")
        .arg(key)
        .arg(value)
        .exec_async(&mut connect(socket).await)
        .await
        .unwrap();
}

async fn read(socket: &Path, key: &str) -> Option<String> {
    cmd("GET")
        .arg(key)
        .query_async(&mut connect(socket).await)
        .await
        .unwrap()
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(20), waiting).await.is_ok();
    assert!(in_time, "waited in vain for {what}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn signal(name: &str, pid: u32) {
    assert!(
        Command::new("kill")
            .args(["-s", name, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn is_alive(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// Whether the last Redis went by itself: then it took its note of its process id with it.
fn ended_in_order(place: &Path) -> bool {
    !place.join("redis/redis.pid").exists()
}

fn process_group(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // pid (name) state parent group …; the name may contain anything.
    let (_, after_name) = status.rsplit_once(") ").unwrap();
    after_name.split(' ').nth(2).unwrap().parse().unwrap()
}

/// The process that works in the directory of the private Redis, whoever started it.
fn redis_on(place: &Path) -> Option<u32> {
    let home = place.join("redis").canonicalize().unwrap();
    let processes = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .into_iter()
        .find(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == home))
}
