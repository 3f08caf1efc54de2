//! The command line: `serve`, `schema`, `config check`, `import check-ins`, `import scores`.
//!
//! Owns flags, what goes to standard output and how the process ends. Logs go to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)] // the program's own output

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand};
use tallyboard::app::{App, Backing};
use tallyboard::clock::Clock;
use tallyboard::config::{Overrides, Settings};
use tallyboard::import::{self, Summary};
use tallyboard::leaderboard::{Boards, TieBreak};
use tallyboard::{graphql, server};
use tracing_subscriber::EnvFilter;

/// Self-hosted check-ins, leaderboards and presence behind one live GraphQL API.
#[derive(Parser)]
#[command(name = "tallyboard", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the GraphQL API.
    Serve {
        #[command(flatten)]
        common: Common,
        /// Address and port to listen on, over server.listen; port 0 takes a free one.
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
    },
    /// Print the API's schema.
    Schema,
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Bring in history from files.
    #[command(subcommand)]
    Import(ImportCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Check the configuration and print how each board is encoded.
    Check {
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Subcommand)]
enum ImportCommand {
    /// Past check-ins, without rewards: a CSV file with the columns user,date or user,at. May be repeated.
    CheckIns {
        /// The CSV file.
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Past scores: a CSV file with the columns user,date,points or user,at,points. Repeating it doubles nothing.
    Scores {
        /// The CSV file.
        file: PathBuf,
        /// The board's id.
        #[arg(long)]
        board: String,
        #[command(flatten)]
        common: Common,
    },
}

/// Flags of all commands that use the configuration.
#[derive(Args)]
struct Common {
    /// The configuration file; left out: defaults and TALLYBOARD_… variables.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the private Redis and other files are kept, over server.data_dir.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// For development: loopback only, callers name themselves by X-Dev-User and X-Dev-Role.
    #[arg(long)]
    dev: bool,
    /// With --dev: start the clock at this instant, such as 2026-11-30T08:00:00Z, and let it run.
    #[arg(long, value_name = "INSTANT", requires = "dev")]
    now: Option<DateTime<Utc>>,
}

impl Common {
    fn settings(&self, listen: Option<SocketAddr>) -> Result<Settings, Failure> {
        let overrides = Overrides {
            data_dir: self.data_dir.clone(),
            listen,
        };
        Ok(Settings::load(self.config.as_deref(), &overrides)?)
    }

    fn clock(&self) -> Clock {
        self.now.map_or_else(Clock::wall, Clock::started_at)
    }
}

/// Anything that ends the program, in words for its operator.
type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match run(cli.command).await {
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
        Command::Schema => {
            print!("{}", graphql::sdl());
            Ok(())
        }
        Command::Config(ConfigCommand::Check { common }) => check(&common),
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
    let stopped = stop_signal()?;
    let running = server::start(common.settings(listen)?, common.clock(), common.dev).await?;
    println!("listening on http://{}", running.address);
    stopped.await;
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
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

fn check(common: &Common) -> Result<(), Failure> {
    let settings = common.settings(None)?;
    let (zone, boards) = (settings.zone()?, Boards::plan(&settings)?);
    let source = common
        .config
        .as_deref()
        .map_or_else(|| "the defaults".into(), |file: &Path| file.display().to_string());
    println!("{source}: good");
    println!(
        "days: {}, each from {}",
        zone.name(),
        zone.starts_at().format("%H:%M")
    );
    if boards.iter().next().is_none() {
        println!("boards: none");
    }
    for board in boards.iter() {
        println!(
            "board {}: {:?}, points within {} either way",
            board.id, board.title, board.max_points
        );
        for plan in &board.plans {
            let period = plan.period.as_str();
            match board.tie_break {
                TieBreak::FirstToReach => {
                    println!(
                        "  {period:<8}  first to reach, told apart by {} ms ({} bits)",
                        plan.tick_ms, plan.tie_bits
                    );
                }
                TieBreak::None => println!("  {period:<8}  equal points stand by user id"),
            }
        }
    }
    Ok(())
}

async fn import<E: std::error::Error + Send + Sync + 'static>(
    common: &Common,
    work: impl AsyncFnOnce(&App) -> Result<Summary, E>,
) -> Result<(), Failure> {
    let settings = common.settings(None)?;
    let backing = Backing::join_or_start(&settings).await?;
    let outcome: Result<Summary, Failure> = async {
        let app: Arc<App> = App::open(settings, common.clock(), &backing).await?;
        Ok(work(&app).await?)
    }
    .await;
    backing.stop().await;
    println!("{}", outcome?);
    Ok(())
}
