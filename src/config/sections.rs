//! The sections of the configuration file, key by key, with their defaults.

use super::*;
use crate::day::Period;
use crate::leaderboard::{BoardOrder, RankMethod, ScoreOperator, TieBreak};

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `[server]`
    pub server: Server,
    /// `[redis]`
    pub redis: Redis,
    /// `[ledger]`
    pub ledger: Ledger,
    /// `[day]`
    pub day: Day,
    /// `[checkin]`
    pub checkin: CheckIn,
    /// `[makeup]`
    pub makeup: MakeUp,
    /// `[[board]]`
    pub board: Vec<Board>,
    /// `[retention]`
    pub retention: Retention,
    /// `[presence]`
    pub presence: Presence,
    /// `[profile]`
    pub profile: Profile,
    /// `[analytics]`
    pub analytics: Analytics,
    /// `[live]`
    pub live: Live,
    /// `[graphql]`
    pub graphql: GraphQl,
    /// `[auth]`
    pub auth: Auth,
    /// `[rate]`
    pub rate: Rate,
    /// `[log]`
    pub log: Log,
}

/// Declares one section: its keys, their types, docs and defaults in one place.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $kind:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$key_doc])* pub $key: $kind,)* }

        impl Default for $name {
            fn default() -> $name {
                $name { $($key: $default,)* }
            }
        }
    };
}

section! {
    /// Where the server listens and keeps its files.
    Server {
        /// Address and port of HTTP and WebSocket.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// A listener of its own for `/metrics`; empty: the main one.
        metrics_listen: String = String::new(),
        /// The path under which a proxy serves us.
        base_path: String = "/".into(),
        /// Networks whose forwarded address is believed.
        trusted_proxies: Vec<String> = Vec::new(),
        /// The origins whose pages may call, besides our own; `*`: any.
        cors_origins: Vec<String> = Vec::new(),
        /// The private Redis, locks and files.
        data_dir: PathBuf = "data".into(),
        /// How long a stop may take, in seconds.
        shutdown_seconds: u64 = 20,
    }
}

section! {
    /// The store.
    Redis {
        /// Empty: a private redis-server in the data directory.
        url: String = String::new(),
        /// The first part of every key.
        prefix: String = "tb".into(),
        /// A power of two, fixed when the data is created.
        partitions: u32 = 1,
        /// Of the private server's append-only file.
        durability: Durability = Durability::Always,
        /// Within which callers are answered when Redis does not answer, in milliseconds.
        timeout_ms: u64 = 1000,
    }
}

/// When the private Redis calls a write done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// After it is on disk.
    Always,
    /// At once; a crash may lose the last second.
    EverySec,
}

section! {
    /// The record in SQL.
    Ledger {
        /// Empty: SQLite in the data directory.
        url: String = String::new(),
        /// Events that may wait before mutations are refused.
        max_lag: u64 = 5_000_000,
    }
}

section! {
    /// Which date an instant belongs to.
    Day {
        /// An IANA name.
        time_zone: String = "UTC".into(),
        /// When the day turns, `HH:MM` on the zone's wall clock.
        starts_at: String = "00:00".into(),
    }
}

section! {
    /// Daily check-ins and what they earn.
    CheckIn {
        /// Full years before the present one that Redis keeps.
        keep_years: u32 = 2,
        /// Points for each day of a repeating cycle.
        cycle: Vec<i64> = vec![10, 10, 10, 10, 10, 10, 100],
        /// Points for each full week in a row.
        weekly_bonus: i64 = 50,
        /// The INCREMENT board that also gets the reward's points; empty: none.
        points_board: String = String::new(),
        /// The INCREMENT board that gets +1 a check-in, another than points_board; empty: none.
        count_board: String = String::new(),
        /// What certain streak lengths earn.
        milestone: Vec<Milestone> = Vec::new(),
    }
}

/// What a streak of a certain length earns, once per run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Milestone {
    /// The length, in days.
    pub streak: u32,
    /// Points for the wallet.
    #[serde(default)]
    pub points: i64,
    /// Make-up cards.
    #[serde(default)]
    pub make_up_cards: u32,
}

section! {
    /// Making up missed days.
    MakeUp {
        /// How many days before today can be made up.
        window_days: u32 = 7,
    }
}

section! {
    /// One leaderboard. Only `id` has no useful default.
    Board {
        /// Part of key names and URLs; never changes.
        id: String = String::new(),
        /// What people read; empty: the id.
        title: String = String::new(),
        /// Which end is best.
        order: BoardOrder = BoardOrder::HighestFirst,
        /// How a score changes the points.
        operator: ScoreOperator = ScoreOperator::Increment,
        /// Who stands first among equals.
        tie_break: TieBreak = TieBreak::FirstToReach,
        /// The ranks that are shown unless asked otherwise.
        rank_method: RankMethod = RankMethod::Ordinal,
        /// Which periods are kept.
        periods: Vec<Period> = vec![Period::Day, Period::Week, Period::Month, Period::AllTime],
        /// Points lie within this, both ways.
        max_points: i64 = 10_000_000,
        /// The coarsest tick for FIRST_TO_REACH, in milliseconds.
        max_tick_ms: i64 = 5_000,
        /// Rolling boards: last N days.
        windows: Vec<u32> = Vec::new(),
        /// Above 0: the board also has a heat span.
        half_life_hours: f64 = 0.0,
        /// Above 0: keep the best N.
        cap: u64 = 0,
        /// Whether users may submit their own scores.
        user_writes: bool = false,
    }
}

section! {
    /// How long closed periods stay in Redis, in days.
    Retention {
        /// Of DAY boards.
        day_boards_days: u32 = 40,
        /// Of WEEK boards.
        week_boards_days: u32 = 100,
        /// Of MONTH boards.
        month_boards_days: u32 = 400,
    }
}

section! {
    /// Who is online.
    Presence {
        /// How long a user counts as online after a heartbeat, in seconds.
        window_seconds: u32 = 300,
        /// Rooms at once for one user.
        max_rooms_per_user: u32 = 16,
        /// Sessions at once for one user.
        max_sessions_per_user: u32 = 16,
        /// A list of users, or only a count.
        mode: PresenceMode = PresenceMode::Exact,
    }
}

/// What presence keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PresenceMode {
    /// Who was seen, and when.
    Exact,
    /// A bit a minute and user.
    Count,
}

section! {
    /// Names and avatars.
    Profile {
        /// Whether users may set their own.
        user_writes: bool = false,
    }
}

section! {
    /// Day bitmaps.
    Analytics {
        /// How many days they stay in Redis.
        keep_days: u32 = 100,
    }
}

section! {
    /// Subscriptions.
    Live {
        /// The shortest time between two updates of a topic, in milliseconds.
        interval_ms: u64 = 100,
        /// The most connections at a time: WebSockets and streams.
        max_sockets: usize = 20_000,
        /// The most operations at a time on one socket.
        max_subscriptions: usize = 100,
        /// The largest message that a client may send, in bytes.
        max_message_bytes: usize = 256 * 1024,
        /// How long a client may take to say who is asking.
        init_timeout_seconds: u64 = 10,
        /// How often a socket is pinged, 1 to 25, and at least twice in the window of presence; one that answers none is dropped before the second next.
        ping_seconds: u64 = 20,
        /// How long a client may take nothing of what is sent before it is dropped.
        send_timeout_seconds: u64 = 10,
    }
}

section! {
    /// What a request may ask.
    GraphQl {
        /// Whether the schema may be asked for.
        introspection: bool = true,
        /// Which documents are served.
        persisted: Persisted = Persisted::Automatic,
        /// A file with the documents that clients may name: JSON by their ids, or an Apollo manifest. Empty: none.
        documents_file: String = String::new(),
        /// The largest body of a request, in bytes.
        max_body_bytes: usize = 1 << 20,
        /// The most requests in one body.
        max_batch: usize = 10,
        /// The most tokens of a document.
        max_tokens: usize = 5_000,
        /// The deepest nesting of a document.
        max_depth: usize = 15,
        /// The most fields of a document, each counted as often as its fragment is spread.
        max_fields: usize = 1_000,
        /// The most fields of a document that are given another name.
        max_aliases: usize = 200,
        /// The most directives of a document.
        max_directives: usize = 50,
        /// The most that a document may select, in fields of the answer: those of a list count as often as it is long.
        max_complexity: usize = 20_000,
    }
}

/// Which documents are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persisted {
    /// Any, sent whole each time.
    Off,
    /// Any; what was sent with its hash may then be named by it.
    Automatic,
    /// Those of the list only.
    Only,
}

section! {
    /// What is logged, to standard error.
    Log {
        /// How a line looks.
        format: LogFormat = LogFormat::Text,
        /// What is logged: `error`, `warn`, `info`, `debug`, or a filter as `RUST_LOG` has it, which wins over this.
        level: String = "info".into(),
        /// Where traces are sent by OTLP over HTTP; empty: what `OTEL_EXPORTER_OTLP_ENDPOINT` says, or nowhere.
        otlp_endpoint: String = String::new(),
    }
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object a line, for programs.
    Json,
}

section! {
    /// How much may be asked in a minute on each node; as much at once. 0: no limit.
    Rate {
        /// Mutations of a signed-in user, each field at the root of a document counted.
        user_mutations: u32 = 120,
        /// Queries of a signed-in user, and subscriptions begun.
        user_operations: u32 = 1_200,
        /// Mutations from an address, of all users there; backends are not counted.
        address_mutations: u32 = 6_000,
        /// Queries from an address, and subscriptions begun, those of nobody in particular included.
        address_operations: u32 = 60_000,
        /// Mutations of a backend: a caller with the role SERVICE or ADMIN.
        service_mutations: u32 = 0,
        /// Queries of a backend, and subscriptions begun.
        service_operations: u32 = 0,
    }
}

section! {
    /// Who may do what.
    Auth {
        /// Whether anybody may read boards and online counts.
        public_reads: bool = true,
        /// HS256 secret, 32 bytes at least.
        jwt_secret: Secret = Secret::default(),
        /// A file with HS256 secrets, one a line; read again when it changes.
        jwt_secret_file: String = String::new(),
        /// Public keys: PEM (RS256, ES256) or JWKS; read again when it changes.
        jwt_key_file: String = String::new(),
        /// The expected `iss`; empty: any.
        issuer: String = String::new(),
        /// The expected `aud`; empty: any.
        audience: String = String::new(),
        /// The claim that names the user.
        user_claim: String = "sub".into(),
        /// The claim that names the role.
        role_claim: String = "role".into(),
        /// How far the clocks of who issues tokens may be apart from ours.
        leeway_seconds: u32 = 5,
    }
}
