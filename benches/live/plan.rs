//! What is run: contenders, sizes and durations, from the environment.

use std::fmt;
use std::time::Duration;

use crate::contender::Contender;

/// Changes of each board in a second.
pub const RATE: u32 = 10;

/// Changes that nobody counts, so that buffers have grown and code is warm.
pub const WARM_UP: Duration = Duration::from_secs(3);

/// Files that a server opens besides its sockets, with room to spare.
const FILES_BESIDE: usize = 500;

/// All runs of one table.
pub struct Plan {
    contenders: Vec<Contender>,
    subscribers: Vec<usize>,
    seconds: u64,
    /// Boards, and subscribers of each; of ours alone.
    mixed: Option<(usize, usize)>,
}

/// One contender under one load.
pub struct Run {
    pub contender: Contender,
    pub boards: usize,
    pub subscribers_each: usize,
    pub window: Duration,
}

impl Plan {
    pub fn from_env() -> Plan {
        let text = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let number = |text: &str| -> usize {
            let number = text.trim().parse();
            number.unwrap_or_else(|_| panic!("{text:?} is no number"))
        };
        let mixed = text("MIXED", "100x50");
        Plan {
            contenders: text("CONTENDERS", "shared,ours,stock,node")
                .split(',')
                .map(Contender::named)
                .collect(),
            subscribers: text("SUBSCRIBERS", "1000,5000").split(',').map(number).collect(),
            seconds: number(&text("SECONDS", "15")) as u64,
            mixed: mixed
                .split_once('x')
                .map(|(boards, each)| (number(boards), number(each))),
        }
    }

    /// Size by size, then the mixed run.
    pub fn runs(&self) -> Vec<Run> {
        let window = Duration::from_secs(self.seconds);
        let run = |contender, boards, subscribers_each| Run {
            contender,
            boards,
            subscribers_each,
            window,
        };
        let mut runs: Vec<Run> = self
            .subscribers
            .iter()
            .flat_map(|&count| {
                self.contenders
                    .iter()
                    .map(move |&contender| run(contender, 1, count))
            })
            .collect();
        if let (Some((boards, each)), true) = (self.mixed, self.contenders.contains(&Contender::Ours)) {
            runs.push(run(Contender::Ours, boards, each));
        }
        runs
    }

    /// How many files a process of the largest run has open.
    pub fn most_sockets(&self) -> usize {
        let most = self.runs().iter().map(Run::subscribers).max();
        most.unwrap_or(0) + FILES_BESIDE
    }
}

impl Run {
    pub fn subscribers(&self) -> usize {
        self.boards * self.subscribers_each
    }

    /// The boards' ids. A single one is `points`, which all contenders know.
    pub fn board_ids(&self) -> Vec<String> {
        match self.boards {
            1 => vec!["points".into()],
            many => (0..many).map(|i| format!("points{i:03}")).collect(),
        }
    }

    /// Changes of each board, warm-up included.
    pub fn changes(&self) -> usize {
        (WARM_UP + self.window).as_secs() as usize * RATE as usize
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.boards {
            1 => write!(f, "{} {}", self.contender.name(), self.subscribers_each),
            many => write!(f, "{} {many}x{}", self.contender.name(), self.subscribers_each),
        }
    }
}
