//! A look at a Redis that is not ours: whether it can serve, and what its operator should know.

use super::{Connection, Request, reply};

/// Refuses a Redis that is too old, and warns about settings by which acknowledged writes could get lost.
pub async fn check(connection: &Connection) -> Result<(), String> {
    let mut request = Request::new();
    let mut info = redis::cmd("INFO");
    info.arg("server");
    request.command(info);
    for setting in ["maxmemory", "maxmemory-policy", "appendonly", "save"] {
        let mut get = redis::cmd("CONFIG");
        get.arg("GET").arg(setting);
        request.command(get);
    }
    let mut replies = connection
        .run(&request)
        .await
        .map_err(|error| error.to_string())?
        .into_iter();
    let info: String = replies
        .next()
        .map(reply)
        .transpose()
        .map_err(|error| error.to_string())?
        .unwrap_or_default();
    refuse_old(&info)?;
    // Hosted services often forbid CONFIG: then nothing is known, and nothing is said.
    let mut setting = || {
        let pair: Option<(String, String)> = replies.next().and_then(|value| reply(value).ok());
        pair.map(|(_, value)| value)
    };
    let (maxmemory, policy, appendonly, save) = (setting(), setting(), setting(), setting());
    if maxmemory.is_some_and(|limit| limit != "0")
        && policy.as_deref().is_some_and(|policy| policy != "noeviction")
    {
        let policy = policy.unwrap_or_default();
        tracing::warn!(
            policy,
            "this Redis may evict keys when its memory is full, and streaks and scores with them: set maxmemory-policy noeviction"
        );
    }
    if appendonly.as_deref() == Some("no") {
        let snapshots = save.is_some_and(|save| !save.is_empty());
        tracing::warn!(
            snapshots,
            "this Redis keeps no append-only file: a crash loses what was written since the last snapshot: set appendonly yes"
        );
    }
    Ok(())
}

fn refuse_old(info: &str) -> Result<(), String> {
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    if field("redis_mode") == Some("cluster") {
        return Err("it is part of a Redis Cluster, which is not supported yet".into());
    }
    // Valkey answers with the Redis version it is compatible with.
    let version = field("redis_version").unwrap_or("unknown");
    match version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok())
    {
        Some(major) if major >= 7 => Ok(()),
        _ => Err(format!("its version is {version}, and 7.0 or newer is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_from_7_on_is_taken_and_older_ones_are_refused_by_their_number() {
        assert!(refuse_old("# Server\r\nredis_version:7.0.15\r\n").is_ok());
        assert!(refuse_old("redis_version:10.1.0").is_ok());
        assert!(refuse_old("redis_version:6.2.14").unwrap_err().contains("6.2.14"));
        assert!(refuse_old("").is_err());
    }
}
