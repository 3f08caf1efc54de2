//! The door: HTTP and WebSocket.
//!
//! Owns listening, serving and stopping. [`router`] has the routes; who is asking is [`crate::auth`]'s.

pub mod dev_only;
pub mod dev_token;
pub mod doorway;
pub mod farewell;
pub mod metrics;
pub mod origins;
pub mod over_http;
pub mod pages;
pub mod proxies;
pub mod router;
pub mod security;
pub mod sockets;
pub mod visitor;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use doorway::{Doorway, Peer};
use farewell::Farewell;
use metrics::Metrics;
use origins::Origins;
use proxies::Proxies;
use router::Door;

use crate::app::{App, Backing, StartError};
use crate::auth::{self, Identity};
use crate::clock::Clock;
use crate::config::{ConfigError, Settings};
use crate::graphql;
use crate::graphql::persisted::{ListError, Persisted};
use crate::live::socket::Terms;
use crate::live::{self, Connections, Topics};
use crate::presence::attendance;
use crate::rate::Rates;
use crate::sampled::{self, Sampled};

/// How long to wait for the subscription to Redis before serving without it.
const FIRST_HEARING: Duration = Duration::from_secs(5);

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without a key nobody could be told from anybody.
    #[error(
        "serve needs a key to tell callers by: set auth.jwt_secret_file (HS256) or auth.jwt_key_file (RS256, ES256; PEM \
         or JWKS), as docs/auth.md shows; or --dev, on this machine only, which believes the headers X-Dev-User and \
         X-Dev-Role"
    )]
    NoIdentity,
    /// The settings' keys cannot be used.
    #[error(transparent)]
    Keys(#[from] ConfigError),
    /// `--dev` would let strangers name themselves.
    #[error("--dev serves on loopback only, and {0} is {1}; 127.0.0.1:8080 would do")]
    NotLoopback(&'static str, SocketAddr),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {cause}; choose another with {set_by}, port 0 takes a free one")]
    Listen {
        /// What says where.
        set_by: &'static str,
        /// As configured.
        address: SocketAddr,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The documents that clients may name cannot be read.
    #[error(transparent)]
    Documents(#[from] ListError),
    /// The app did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A server that runs.
pub struct Running {
    /// Where it listens; the port is the real one, also when 0 was asked for.
    pub address: SocketAddr,
    /// Where it listens for who scrapes its metrics, if that is elsewhere.
    pub metrics_address: Option<SocketAddr>,
    /// What it serves.
    pub app: Arc<App>,
    backing: Backing,
    stop: watch::Sender<bool>,
    serving: JoinHandle<std::io::Result<()>>,
    metrics: Option<JoinHandle<std::io::Result<()>>>,
    keeper: JoinHandle<()>,
    audit: JoinHandle<()>,
    attendance: JoinHandle<()>,
    keys: JoinHandle<()>,
    sampled: JoinHandle<()>,
    connections: Connections,
}

/// Starts to serve. Callers are told apart by the keys of the settings; with `dev` they may also name themselves.
pub async fn start(settings: Settings, clock: Clock, dev: bool) -> Result<Running, ServeError> {
    let identity = Identity::open(&settings.auth, clock.clone(), dev).await?;
    if !identity.has_keys() && !dev {
        return Err(ServeError::NoIdentity);
    }
    let persisted = Persisted::open(&settings.graphql)?;
    let (listen, apart) = (settings.server.listen, settings.server.metrics_address()?);
    let proxies = Proxies::parse(&settings.server.trusted_proxies)?;
    let origins = Origins::parse(&settings.server.cors_origins)?;
    let (listener, address) = bind("server.listen", listen, dev).await?;
    let scraped = match apart {
        Some(address) => Some(bind("server.metrics_listen", address, dev).await?),
        None => None,
    };
    let backing = Backing::start(&settings).await?;
    let app = match App::open(settings, clock, &backing).await {
        Ok(app) => app,
        Err(error) => {
            backing.stop().await;
            return Err(error.into());
        }
    };
    if !app.changes.heard_within(FIRST_HEARING).await {
        tracing::warn!("changes in Redis are not heard yet; subscribers will wait for them");
    }
    announce_the_day(&app);
    let keeper = tokio::spawn(crate::app::keep(Arc::downgrade(&app)));
    let audit = tokio::spawn(live::audit::keep(Arc::downgrade(&app)));
    let attendance = tokio::spawn(attendance::keep(Arc::downgrade(&app)));
    let keys = tokio::spawn(auth::keep(identity.clone()));
    let (stop, stopping) = watch::channel(false);
    let looked_up = Sampled::default();
    let sampled = tokio::spawn(sampled::keep(Arc::downgrade(&app), looked_up.clone()));
    let door = door(
        &app,
        persisted,
        identity,
        &looked_up,
        (proxies, origins),
        stopping,
    );
    let (connections, farewell) = (door.connections.clone(), door.farewell.clone());
    let metrics_address = scraped.as_ref().map(|(_, address)| *address);
    let metrics = scraped.map(|(listener, _)| {
        let router = router::metrics_only(door.metrics.clone());
        tokio::spawn(axum::serve(listener, router).into_future())
    });
    let router = router::router(door).into_make_service_with_connect_info::<Peer>();
    let serving = axum::serve(Doorway::new(listener, address, farewell.clone()), router)
        .with_graceful_shutdown(farewell.over());
    let serving = tokio::spawn(serving.into_future());
    Ok(Running {
        address,
        metrics_address,
        app,
        backing,
        stop,
        serving,
        metrics,
        keeper,
        audit,
        attendance,
        keys,
        sampled,
        connections,
    })
}

/// Takes an address.
async fn bind(
    key: &'static str,
    address: SocketAddr,
    dev: bool,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    if dev && !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(key, address));
    }
    let set_by = match key {
        "server.listen" => "--listen or server.listen",
        other => other,
    };
    let bound = TcpListener::bind(address).await;
    let bound = bound.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|cause| ServeError::Listen {
        set_by,
        address,
        cause,
    })
}

/// What every route may need.
fn door(
    app: &Arc<App>,
    persisted: Persisted,
    identity: Identity,
    sampled: &Sampled,
    (proxies, origins): (Proxies, Origins),
    stopping: watch::Receiver<bool>,
) -> Door {
    let settings = &app.settings;
    let rates = Rates::new(&settings.rate, &app.clock);
    let drain = Duration::from_secs(settings.server.shutdown_seconds) / 2;
    let api = graphql::api(app.clone(), persisted);
    Door {
        metrics: Metrics::of(app, &rates, api.requests(), sampled),
        terms: Terms {
            topics: Topics::new(api, app.gauges.clone()),
            live: settings.live_in_the_window(),
            attendance: app.attendance.clone(),
            identity,
            rates,
        },
        farewell: Farewell::new(stopping.clone()),
        connections: Connections::new(settings.live.max_sockets, stopping, drain, app.gauges.clone()),
        proxies,
        origins,
        app: app.clone(),
    }
}

impl Running {
    /// The process id of the private Redis, if there is one and it lives.
    pub fn redis_pid(&self) -> Option<u32> {
        self.backing.pid()
    }

    /// Where Redis is.
    pub fn redis_address(&self) -> &redis::ConnectionInfo {
        self.backing.address()
    }

    /// Takes no more requests, answers those accepted, then stops what it started.
    pub async fn stop(self) {
        let Running {
            app,
            backing,
            stop,
            serving,
            metrics,
            keeper,
            audit,
            attendance,
            keys,
            sampled,
            connections,
            ..
        } = self;
        stop.send_replace(true);
        let patience = Duration::from_secs(app.settings.server.shutdown_seconds);
        let done = async { tokio::join!(serving, connections.emptied()).0 };
        match tokio::time::timeout(patience, done).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::error!(%error, "the listener failed"),
            Ok(Err(error)) => tracing::error!(%error, "the listener panicked"),
            Err(_) => tracing::warn!(
                ?patience,
                "some requests were not done in time; stopping without them"
            ),
        }
        if let Some(metrics) = metrics {
            metrics.abort();
        }
        keeper.abort();
        audit.abort();
        keys.abort();
        sampled.abort();
        if let Err(error) = app.attendance.leave(&app).await {
            tracing::debug!(%error, "those on sockets leave with the window");
        }
        attendance.abort();
        drop(app);
        backing.stop().await;
    }
}

fn announce_the_day(app: &App) {
    let now = app.clock.now();
    let today = app.zone.date_of(now);
    let turns_at = app.zone.end_of(today);
    tracing::info!(
        zone = app.zone.name(),
        starts_at = %app.zone.starts_at().format("%H:%M"),
        %today,
        %turns_at,
        "business days are in force"
    );
}
