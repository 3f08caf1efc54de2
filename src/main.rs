//! The command line: `serve`, `token`, `schema`, `config check`, `import check-ins`, `import scores`, `export users`.
//!
//! Owns flags, what goes to standard output and how the process ends. Logs go to standard error.
#![allow(clippy::print_stderr)] // the program's own output

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clap::{Args, Parser, Subcommand};
use tallyboard::app::{App, Backing};
use tallyboard::auth::Identity;
use tallyboard::auth::issue::Issuer;
use tallyboard::auth::wanted;
use tallyboard::clock::Clock;
use tallyboard::config::{Overrides, Settings};
use tallyboard::figures::roster::{self, Wanted};
use tallyboard::figures::{Activity, DayMatch};
use tallyboard::ids::UserId;
use tallyboard::import::{self, Summary};
use tallyboard::leaderboard::Boards;
use tallyboard::{day, graphql, logs, server};

/// Self-hosted check-ins, leaderboards and presence behind one live GraphQL API.
#[derive(Parser)]
#[command(name = "tallyboard", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the GraphQL API over HTTP and WebSocket.
    ///
    /// Prints `listening on http://ADDRESS:PORT` on standard output when it is ready; its logs go to standard error.
    /// SIGINT (Ctrl-C) and SIGTERM stop it in order. Without redis.url it keeps its data in a private Redis in the data
    /// directory. Callers are told apart by tokens, whose key is set in [auth]; without one it serves in --dev only.
    Serve {
        #[command(flatten)]
        common: Common,
        /// Listen on this address and port (setting server.listen); port 0 takes a free one.
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
    },
    /// Make a token that says who is calling, and print it.
    ///
    /// It is signed with the secret of the settings (auth.jwt_secret or auth.jwt_secret_file), or with a private key in
    /// PEM. Send it as `Authorization: Bearer TOKEN`. Nobody can take a token back before it expires.
    Token(TokenArgs),
    /// Print the GraphQL schema (SDL).
    Schema,
    /// Check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Bring in past check-ins and scores from CSV files.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Write out what is known, as CSV on standard output.
    #[command(subcommand)]
    Export(ExportCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Say whether the configuration can work, and how each board keeps points and the order of arrival.
    ///
    /// Reads nothing but the configuration: it needs no Redis and no running server.
    Check {
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Subcommand)]
enum ImportCommand {
    /// Bring in past check-ins, without paying rewards.
    ///
    /// The file's first line names its columns: user,date or user,at, where `date` is a date in the business time zone
    /// (2026-11-30) and `at` an instant (2026-11-30T08:00:00Z). The lines may stand in any order. Lines that cannot be
    /// used are reported with their numbers. Importing the same file again changes nothing. It works beside a server
    /// that runs on the same data directory, and without one.
    CheckIns {
        /// The CSV file.
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Bring in past scores of one board.
    ///
    /// The file's first line names its columns: user,date,points or user,at,points, where `date` is a date in the
    /// business time zone (2026-11-30) and `at` an instant (2026-11-30T08:00:00Z). The lines may stand in any order; each
    /// counts in the periods of its own date. Lines that cannot be used are reported with their numbers. Importing the
    /// same file again changes nothing. It works beside a server that runs on the same data directory, and without one.
    Scores {
        /// The CSV file.
        file: PathBuf,
        /// The id of the board that the scores are for.
        #[arg(long)]
        board: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Subcommand)]
enum ExportCommand {
    /// List the users who were active on days that are kept (setting analytics.keep_days), one a line, in no order.
    ///
    /// It works beside a server that runs on the same data directory, and without one.
    Users {
        /// The first day, such as 2026-11-30, in the business time zone.
        #[arg(long, value_name = "DATE", value_parser = day::parse_date)]
        from: NaiveDate,
        /// The last day.
        #[arg(long, value_name = "DATE", value_parser = day::parse_date)]
        to: NaiveDate,
        /// On how many of these days: at least one, or all.
        #[arg(long = "match", value_enum, default_value = "any")]
        days: DayMatch,
        /// What counts as active.
        #[arg(long, value_enum, default_value = "check-in")]
        activity: Activity,
        #[command(flatten)]
        common: Common,
    },
}

/// Flags of `token`.
#[derive(Args)]
struct TokenArgs {
    /// The user that it names; only ANALYST, SERVICE and ADMIN need not be one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// What it is trusted with: USER, ANALYST, SERVICE or ADMIN.
    #[arg(long, default_value = "USER")]
    role: String,
    /// How long it lasts, such as 90s, 15m, 1h or 30d.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = wanted::duration)]
    expires_in: TimeDelta,
    /// Sign with this private key, RSA or P-256 in PEM, instead of the secret of the settings.
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Say that the key is the one of this name, for a JWKS with several.
    #[arg(long, value_name = "NAME")]
    kid: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Flags of all commands that use the configuration.
#[derive(Args)]
struct Common {
    /// Read settings from this TOML file; TALLYBOARD_… environment variables win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep the data in this directory (setting server.data_dir).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Development mode: on the loopback interface only, callers name themselves by X-Dev-User and X-Dev-Role.
    #[arg(long)]
    dev: bool,
    /// With --dev: start the clock at this instant, such as 2026-11-30T08:00:00Z, and let it run on.
    #[arg(long, value_name = "INSTANT", requires = "dev")]
    now: Option<DateTime<Utc>>,
}

impl Common {
    /// The settings, by which it is logged from here on.
    fn settings(&self, listen: Option<SocketAddr>) -> Result<Settings, Failure> {
        let overrides = Overrides {
            data_dir: self.data_dir.clone(),
            listen,
        };
        let settings = Settings::load(self.config.as_deref(), &overrides)?;
        logs::start(&settings.log)?;
        Ok(settings)
    }

    fn clock(&self) -> Clock {
        self.now.map_or_else(Clock::wall, Clock::started_at)
    }
}

/// Anything that ends the program, in words for its operator.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(cause) => {
            eprintln!("tallyboard: cannot start: {cause}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(program());
    // A write to a pipe that nobody empties must not keep a process that was told to stop.
    runtime.shutdown_background();
    code
}

async fn program() -> ExitCode {
    let done = run(Cli::parse().command).await;
    logs::finish();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tallyboard: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve { common, listen } => serve(&common, listen).await,
        Command::Token(args) => token(args).await,
        Command::Schema => say(&graphql::sdl()),
        Command::Config(ConfigCommand::Check { common }) => check(&common).await,
        Command::Export(ExportCommand::Users {
            from,
            to,
            days,
            activity,
            common,
        }) => {
            let wanted = Wanted {
                from,
                to,
                days,
                activity,
            };
            export(&common, &wanted).await
        }
        Command::Import(ImportCommand::CheckIns { file, common }) => {
            import(&common, async |app| import::check_ins::import(app, &file).await).await
        }
        Command::Import(ImportCommand::Scores { file, board, common }) => {
            import(&common, async |app| {
                import::scores::import(app, &file, &board).await
            })
            .await
        }
    }
}

async fn serve(common: &Common, listen: Option<SocketAddr>) -> Result<(), Failure> {
    let mut stopped = pin!(stop_signal()?);
    let starting = server::start(common.settings(listen)?, common.clock(), common.dev);
    // Redis may have much to load: whoever waits for that may change their mind.
    let running = tokio::select! {
        running = starting => running?,
        () = &mut stopped => return Ok(()),
    };
    let said = say(&format!("listening on http://{}\n", running.address));
    if said.is_ok() {
        stopped.await;
        tracing::info!("stopping");
    }
    running.stop().await;
    said
}

async fn token(args: TokenArgs) -> Result<(), Failure> {
    let settings = args.common.settings(None)?;
    let user = args.user.as_deref().map(UserId::parse).transpose()?;
    let wanted = wanted::Wanted::new(user, Some(&args.role), args.expires_in)?;
    let issuer = Issuer::of_settings(&settings.auth, args.private_key.as_deref(), args.kid).await?;
    let clock = args.common.clock();
    let token = issuer.issue(&wanted, clock.now())?;
    let identity = Identity::open(&settings.auth, clock, false).await?;
    if identity.has_keys()
        && let Err(why) = identity.of_token(&token)
    {
        return Err(format!("a server with these settings would refuse it: {why}").into());
    }
    say(&format!("{token}\n"))
}

/// Puts `text` on standard output. Whoever reads that may have gone.
fn say(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let said = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    said.map_err(|cause| format!("cannot write to standard output: {cause}").into())
}

/// Completes at the first SIGINT or SIGTERM.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

async fn check(common: &Common) -> Result<(), Failure> {
    let settings = common.settings(None)?;
    let identity = Identity::open(&settings.auth, common.clock(), false).await?;
    let (zone, boards) = (settings.zone()?, Boards::plan(&settings)?);
    let source = common
        .config
        .as_deref()
        .map_or_else(|| "the defaults".into(), |file: &Path| file.display().to_string());
    let mut text = format!("{source}: good\n");
    text += &format!(
        "days: {}, each from {}\n",
        zone.name(),
        zone.starts_at().format("%H:%M")
    );
    text += &match identity.key_names() {
        keys if keys.is_empty() => "tokens: no key, so it serves in --dev only\n".into(),
        keys => format!("tokens: {}\n", keys.join(", ")),
    };
    if boards.iter().next().is_none() {
        text += "boards: none\n";
    }
    for board in boards.iter() {
        text += &board.in_words();
    }
    say(&text)
}

async fn import<E: std::error::Error + Send + Sync + 'static>(
    common: &Common,
    work: impl AsyncFnOnce(&App) -> Result<Summary, E>,
) -> Result<(), Failure> {
    let stopped = stop_signal()?;
    let settings = common.settings(None)?;
    let backing = Backing::join_or_start(&settings).await?;
    let importing = async {
        let app: Arc<App> = App::open(settings, common.clock(), &backing).await?;
        Ok::<Summary, Failure>(work(&app).await?)
    };
    let outcome = tokio::select! {
        outcome = importing => outcome,
        () = stopped => Err("stopped half-way. Run it again: it goes on where it stopped and doubles nothing".into()),
    };
    backing.stop().await;
    say(&format!("{}\n", outcome?))
}

async fn export(common: &Common, wanted: &Wanted) -> Result<(), Failure> {
    let stopped = stop_signal()?;
    let settings = common.settings(None)?;
    let backing = Backing::join_or_start(&settings).await?;
    let exporting = async {
        let app: Arc<App> = App::open(settings, common.clock(), &backing).await?;
        roster::write(&app, wanted, tokio::io::stdout()).await?;
        Ok::<(), Failure>(())
    };
    let outcome = tokio::select! {
        outcome = exporting => outcome,
        () = stopped => Err("stopped half-way: the roster is not complete".into()),
    };
    backing.stop().await;
    outcome
}
