//! Lua scripts and the requests that carry them.
//!
//! Owns how a script is put together, named by its digest (EVALSHA) and loaded again when Redis has forgotten it. Which
//! keys a script gets is its feature's store's; none is spelled in Lua.

use std::sync::OnceLock;

use redis::{Cmd, Pipeline, ToRedisArgs};

/// The Lua part that writes numbers exactly; it comes first wherever a script handles any.
pub const NUMBERS: &str = include_str!("numbers.lua");

/// A script made of Lua parts that share one scope: what several scripts need stands first.
pub struct Script {
    name: &'static str,
    parts: &'static [&'static str],
    ready: OnceLock<redis::Script>,
}

impl Script {
    /// A script named after its file.
    pub const fn new(name: &'static str, parts: &'static [&'static str]) -> Script {
        Script {
            name,
            parts,
            ready: OnceLock::new(),
        }
    }

    /// The file's name, for logs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The whole text.
    pub fn code(&self) -> String {
        self.parts.join("\n")
    }

    fn digest(&self) -> &str {
        self.ready
            .get_or_init(|| redis::Script::new(&self.code()))
            .get_hash()
    }
}

/// Commands and scripts for one round trip. Each must bear being run twice: a request whose answer got lost is sent
/// again.
#[derive(Default)]
pub struct Request {
    pipeline: Pipeline,
    scripts: Vec<&'static Script>,
}

impl Request {
    /// An empty request.
    pub fn new() -> Request {
        let mut request = Request::default();
        request.pipeline.ignore_errors(); // an error of one part must not hide the replies of the others
        request
    }

    /// Adds a plain command.
    pub fn command(&mut self, command: Cmd) -> &mut Request {
        self.pipeline.add_command(command);
        self
    }

    /// Adds a script with all its keys.
    pub fn script<A: ToRedisArgs>(
        &mut self,
        script: &'static Script,
        keys: &[String],
        args: &[A],
    ) -> &mut Request {
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.digest()).arg(keys.len()).arg(keys);
        for arg in args {
            command.arg(arg);
        }
        self.pipeline.add_command(command);
        if !self.scripts.iter().any(|known| std::ptr::eq(*known, script)) {
            self.scripts.push(script);
        }
        self
    }

    /// The name of its first script, or what stands for plain commands.
    pub(super) fn name(&self) -> &'static str {
        self.scripts.first().map_or("commands", |script| script.name())
    }

    /// Whether there is anything to ask.
    pub fn is_empty(&self) -> bool {
        self.pipeline.is_empty()
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The same with its scripts loaded first: so many replies come before those of the request itself.
    pub(super) fn with_scripts(&self) -> (usize, Pipeline) {
        let mut all = Pipeline::new();
        all.ignore_errors();
        for script in &self.scripts {
            all.cmd("SCRIPT").arg("LOAD").arg(script.code());
        }
        for command in self.pipeline.cmd_iter() {
            all.add_command(command.clone());
        }
        (self.scripts.len(), all)
    }
}
