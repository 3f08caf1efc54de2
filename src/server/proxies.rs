//! Where a request really comes from.
//!
//! Owns whose word is taken for it: that of proxies in networks that the operator names (`server.trusted_proxies`), and of
//! nobody else. Only `X-Forwarded-For` is read. The newer `Forwarded` is not: a proxy writes one of the two and passes the
//! other on as a client has made it up, so whoever believes both believes the client. Pure.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

use crate::config::ConfigError;

const KEY: &str = "server.trusted_proxies";

/// The networks of trusted proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    /// Reads networks such as `10.0.0.0/8`, or single addresses.
    pub fn parse(networks: &[String]) -> Result<Proxies, ConfigError> {
        let parsed = networks.iter().map(|text| {
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| {
                let reason = format!("{text:?} is no network; 10.0.0.0/8, 192.0.2.7 or fd00::/8 would be");
                ConfigError::unusable(KEY, reason)
            })
        });
        parsed.collect::<Result<_, _>>().map(Proxies)
    }

    fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address of whoever sent a request that came from `peer`: each trusted proxy says who is before it, from the last
    /// one backwards.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut address = peer.to_canonical();
        if !self.trust(address) {
            return address;
        }
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        for line in lines {
            for hop in line.as_bytes().rsplit(|byte| *byte == b',') {
                let Some(before) = std::str::from_utf8(hop).ok().and_then(address_of) else {
                    return address; // nobody can say who is before this one
                };
                address = before;
                if !self.trust(address) {
                    return address;
                }
            }
        }
        address
    }
}

/// The address in `192.0.2.1`, `192.0.2.1:8080`, `2001:db8::1` or `[2001:db8::1]:8080`.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let alone = text.parse::<IpAddr>().ok();
    let address = alone.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.or_else(bare).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let trusted: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        headers.insert("forwarded", "for=203.0.113.99".parse().unwrap());
        let proxies = Proxies::parse(&trusted).unwrap();
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_last_address_that_no_trusted_proxy_has_is_the_clients() {
        let ours = ["10.0.0.0/8", "192.0.2.7", "fd00::/8"];
        for (peer, forwarded, expected) in [
            ("10.1.1.1", vec!["198.51.100.1"], "198.51.100.1"),
            ("10.1.1.1", vec!["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            (
                "10.1.1.1",
                vec!["1.1.1.1,198.51.100.1 , 192.0.2.7,10.2.2.2"],
                "198.51.100.1",
            ),
            (
                "10.1.1.1",
                vec!["1.1.1.1", "198.51.100.1", "10.2.2.2"],
                "198.51.100.1",
            ),
            ("10.1.1.1", vec!["198.51.100.1:5555"], "198.51.100.1"),
            ("10.1.1.1", vec!["[2001:db8::1]:5555"], "2001:db8::1"),
            ("10.1.1.1", vec!["[2001:db8::1]"], "2001:db8::1"),
            ("fd00::1", vec!["2001:db8::1"], "2001:db8::1"),
            ("::ffff:10.1.1.1", vec!["::ffff:198.51.100.1"], "198.51.100.1"),
            ("10.1.1.1", vec!["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
            ("10.1.1.1", vec!["1.1.1.1, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.1.1.1", vec!["1.1.1.1, "], "10.1.1.1"),
            ("10.1.1.1", vec![], "10.1.1.1"),
            ("198.51.100.9", vec!["1.1.1.1"], "198.51.100.9"),
            ("192.0.2.8", vec!["1.1.1.1"], "192.0.2.8"),
        ] {
            assert_eq!(client(&ours, peer, &forwarded), expected, "{peer} {forwarded:?}");
        }
        assert_eq!(client(&[], "127.0.0.1", &["1.1.1.1"]), "127.0.0.1");
    }

    #[test]
    fn what_is_no_network_is_refused_in_words() {
        let error = Proxies::parse(&["10.0.0.0/33".into()]).unwrap_err().to_string();
        assert!(
            error.starts_with("server.trusted_proxies: \"10.0.0.0/33\" is no network"),
            "{error}"
        );
    }
}
