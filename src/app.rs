//! The wiring: settings and a Redis become a running app.
//!
//! Owns the order of starting and stopping. What the parts do is theirs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo, RedisError};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::checkin::CheckIns;
use crate::checkin::keep::Keep;
use crate::clock::Clock;
use crate::config::{self, ConfigError, Settings};
use crate::day::Zone;
use crate::figures::Figures;
use crate::keyspace::data_dir::{DataDir, DataDirError};
use crate::keyspace::keeper::{self, Keeper};
use crate::keyspace::managed::{self, ManagedError, ManagedRedis};
use crate::keyspace::meta::{self, Layout, MetaError};
use crate::keyspace::{Connection, Keys, Keyspace, Partition, Unavailable, advice};
use crate::leaderboard::{Boards, Leaderboards, Retention};
use crate::live::{Changes, Gauges};
use crate::presence::Presence;
use crate::presence::attendance::Attendance;
use crate::user::Profiles;

/// How long to wait for a Redis that is not ours to start.
const FIRST_CONNECTION: Duration = Duration::from_secs(5);

/// Why the app could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The private Redis did not start.
    #[error(transparent)]
    Managed(#[from] ManagedError),
    /// `redis.url` is no address of a Redis.
    #[error(
        "redis.url is no address of a Redis ({}); redis://HOST:6379 or unix:///PATH/OF/SOCKET would be",
        in_words(.0)
    )]
    Address(RedisError),
    /// Nobody answers there.
    #[error(
        "no Redis at {address}: {cause}. Start one there, or set redis.url to where yours is, or leave it empty for a \
         private one"
    )]
    NoRedis {
        /// Where it was sought.
        address: String,
        /// What happened.
        cause: String,
    },
    /// Something answers that cannot serve.
    #[error("the Redis at {address} cannot be used: {reason}. Set redis.url to another, or leave it empty")]
    Unsuited {
        /// Where it is.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// The data there does not fit the settings.
    #[error(transparent)]
    Meta(#[from] MetaError),
}

/// What is wrong with an address, without the library's name for such errors.
fn in_words(error: &RedisError) -> String {
    let text = error.to_string();
    text.split(" - ").next().unwrap_or_default().to_owned()
}

/// A Redis to work with: somebody else's, or the private one of a data directory.
pub struct Backing {
    address: ConnectionInfo,
    /// Whether it is the private Redis of a server that runs already.
    beside: bool,
    /// Ours to stop, with the directory that stays locked meanwhile.
    private: Option<(ManagedRedis, DataDir)>,
}

impl Backing {
    /// What the settings name: by URL, or the data directory's private Redis, started here.
    pub async fn start(settings: &Settings) -> Result<Backing, StartError> {
        // Boards that cannot be are refused before anything is made or started for them.
        Boards::plan(settings)?;
        if !settings.redis.url.is_empty() {
            let address = settings
                .redis
                .url
                .as_str()
                .into_connection_info()
                .map_err(StartError::Address)?;
            return Ok(Backing {
                address,
                beside: false,
                private: None,
            });
        }
        let dir = DataDir::lock(&settings.server.data_dir)?;
        let durability = match settings.redis.durability {
            config::Durability::Always => managed::Durability::Always,
            config::Durability::EverySec => managed::Durability::EverySec,
        };
        let redis = managed::start(&dir, durability).await?;
        Ok(Backing {
            address: at_socket(redis.socket())?,
            beside: false,
            private: Some((redis, dir)),
        })
    }

    /// As [`Backing::start`], but beside a server that already runs on the data directory, if one does.
    pub async fn join_or_start(settings: &Settings) -> Result<Backing, StartError> {
        match Backing::start(settings).await {
            Err(StartError::DataDir(in_use @ DataDirError::Held { .. })) => {
                match managed::running_socket(&settings.server.data_dir) {
                    Some(socket) => Ok(Backing {
                        address: at_socket(&socket)?,
                        beside: true,
                        private: None,
                    }),
                    None => Err(in_use.into()),
                }
            }
            outcome => outcome,
        }
    }

    /// Where the Redis is.
    pub fn address(&self) -> &ConnectionInfo {
        &self.address
    }

    /// The process id of the private Redis, if it is ours and lives.
    pub fn pid(&self) -> Option<u32> {
        self.private.as_ref().and_then(|(redis, _)| redis.pid())
    }

    /// Stops what is ours: all is on disk and no process is left behind.
    pub async fn stop(self) {
        if let Some((redis, _locked_until_here)) = self.private {
            redis.stop().await;
        }
    }
}

fn at_socket(socket: &Path) -> Result<ConnectionInfo, StartError> {
    redis::ConnectionAddr::Unix(socket.to_owned())
        .into_connection_info()
        .map_err(StartError::Address)
}

/// Everything that resolvers and commands use.
pub struct App {
    /// As loaded.
    pub settings: Settings,
    /// The time.
    pub clock: Clock,
    /// Which date an instant belongs to.
    pub zone: Zone,
    /// Where the data lives.
    pub keyspace: Arc<Keyspace>,
    /// Leaderboards.
    pub boards: Leaderboards,
    /// Check-ins.
    pub checkins: CheckIns,
    /// Who is online.
    pub presence: Presence,
    /// Which of this node's sockets count as sessions.
    pub attendance: Attendance,
    /// Who was active on which days.
    pub figures: Figures,
    /// Names and avatars.
    pub profiles: Profiles,
    /// What has changed.
    pub changes: Changes,
    /// What live push counts.
    pub gauges: Arc<Gauges>,
    /// The partitions that this node's keeper looks after.
    tended: Mutex<Vec<Partition>>,
}

impl App {
    /// Opens the data behind `backing`; refuses data that the settings would misread.
    pub async fn open(settings: Settings, clock: Clock, backing: &Backing) -> Result<Arc<App>, StartError> {
        let zone = settings.zone()?;
        let boards = Arc::new(Boards::plan(&settings)?);
        let address = backing.address().addr().to_string();
        let connection = Connection::open(backing.address().clone(), settings.redis_timeout())
            .map_err(StartError::Address)?;
        let up = connection.up(FIRST_CONNECTION).await;
        up.map_err(|cause| StartError::NoRedis {
            address: address.clone(),
            cause,
        })?;
        if backing.private.is_none() {
            let checked = advice::check(&connection).await;
            checked.map_err(|reason| StartError::Unsuited { address, reason })?;
        }
        let keys = Keys::new(&settings.redis.prefix);
        let channel = keys.changes();
        let keyspace = meta::open(
            connection,
            keys,
            &layout(&settings, &zone, &boards, backing.beside),
        )
        .await?;
        let ids = boards.iter().map(|board| board.id.clone());
        let gauges = Arc::new(Gauges::default());
        let changes = Changes::listen(
            backing.address().clone(),
            channel,
            ids,
            Duration::from_millis(settings.live.interval_ms),
            (clock.clone(), zone),
            gauges.clone(),
        );
        let changes = changes.map_err(StartError::Address)?;
        let retention = Retention::from(&settings.retention);
        let boards = Leaderboards::open(keyspace.clone(), zone, boards, retention, clock.now()).await;
        let boards = boards.map_err(MetaError::from)?;
        let keep = Keep::open(&keyspace, &zone, &settings, clock.now(), backing.beside).await;
        let keep = keep.map_err(MetaError::from)?;
        Ok(Arc::new(App {
            checkins: CheckIns::new(keyspace.clone(), zone, &settings, keep, boards.clone()),
            presence: Presence::new(keyspace.clone(), zone, &settings, keep),
            attendance: Attendance::default(),
            figures: Figures::new(keyspace.clone(), zone, keep),
            profiles: Profiles::new(keyspace.clone(), boards.clone()),
            settings,
            clock,
            zone,
            keyspace,
            boards,
            changes,
            gauges,
            tended: Mutex::default(),
        }))
    }

    /// One turn of the keeper: what time does to the partitions that `keeper` may look after.
    pub async fn look_after(&self, keeper: &Keeper) -> Result<(), Unavailable> {
        let partitions = keeper.partitions().await?;
        *self.tended.lock().unwrap_or_else(PoisonError::into_inner) = partitions.clone();
        // What fails must not keep the rest from being looked after; it is tried again at the next turn.
        let tried = |what, done: Result<(), Unavailable>| {
            if let Err(error) = done {
                tracing::warn!(%error, what, "upkeep failed; it will be tried again");
            }
        };
        let (over, mut is_over) = oneshot::channel::<Infallible>();
        let turn = async {
            let _over = over; // gone when this is
            let checkins = self.checkins.look_after(&partitions, self.clock.now()).await;
            tried("check-ins", checkins);
            tried(
                "boards",
                self.boards.look_after(&partitions, self.clock.now()).await,
            );
            self.keyspace.counts().turned(self.clock.now());
        };
        // Boards may take long at the turn of a day: who goes meanwhile is not left until then.
        let presence = async {
            loop {
                let cleared = self.presence.look_after(&partitions, self.clock.now()).await;
                tried("presence", cleared.map(drop));
                if timeout(keeper::TURN, &mut is_over).await.is_ok() {
                    return;
                }
            }
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(turn, presence) } => Ok(()),
            lost = keeper.hold(&partitions) => lost,
        }
    }

    /// The partitions that this node's keeper looked after last.
    pub fn tended(&self) -> Vec<Partition> {
        self.tended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What this server needs, by name, and what is wrong with it, if anything is.
    pub fn needs(&self) -> [(&'static str, Option<&'static str>); 2] {
        let deaf = (!self.changes.hearing()).then_some("changes in Redis are not heard");
        [("redis", self.keyspace.trouble()), ("subscriber", deaf)]
    }

    /// Why this server should get no traffic now; empty when it is ready.
    pub fn troubles(&self) -> Vec<&'static str> {
        self.needs()
            .into_iter()
            .filter_map(|(_, trouble)| trouble)
            .collect()
    }
}

/// Looks after the data, turn by turn, as long as the app is in use.
pub async fn keep(app: Weak<App>) {
    let Some(keyspace) = app.upgrade().map(|app| app.keyspace.clone()) else {
        return;
    };
    let node = Keeper::new(keyspace);
    while let Some(app) = app.upgrade() {
        if let Err(error) = app.look_after(&node).await {
            tracing::debug!(%error, "the keeper will try again");
        }
        drop(app);
        tokio::time::sleep(keeper::TURN).await;
    }
}

fn layout(settings: &Settings, zone: &Zone, boards: &Boards, beside: bool) -> Layout {
    Layout {
        partitions: settings.redis.partitions,
        beside,
        day: format!("{} {}", zone.name(), zone.starts_at().format("%H:%M")),
        boards: boards
            .iter()
            .map(|board| (board.id.clone(), board.encoding()))
            .collect::<BTreeMap<_, _>>(),
    }
}
