//! How much a caller may ask in a minute, on this node.
//!
//! Owns what is counted for whom. Each field that a mutation asks at its root counts one of the caller's mutations, however
//! it is spelled (aliases, fragments, batches) and over whatever transport; each query, and each subscription begun, counts
//! one of its operations. A document is admitted whole or refused whole, before anything of it is executed: nobody has to
//! find out which half was done. Backends have an allowance of their own; of everybody else their address is counted too.
//!
//! [`limiter`] counts, [`Cost`] says how much, [`Allowance`] is what a request bears along to where it is executed.

mod cost;
mod limiter;

use std::any::TypeId;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_graphql::{Data, Request};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

pub use cost::Cost;
use limiter::{Denied, Limiter};

use crate::clock::Clock;
use crate::config;
use crate::error::Error;
use crate::graphql::access::{Caller, Role};

/// The allowances of all callers of this node; clones share them.
#[derive(Clone)]
pub struct Rates(Arc<Inner>);

struct Inner {
    users: Kinds,
    addresses: Kinds,
    services: Kinds,
    /// Held while one request is weighed against several allowances: it takes from all of them or from none.
    weighing: Mutex<()>,
    refused: Counter,
}

/// What one kind of caller may ask; `None`: as much as it likes.
struct Kinds {
    mutations: Option<Limiter>,
    operations: Option<Limiter>,
}

/// What a request may cost whoever sends it. A request without one is this server's own.
#[derive(Clone)]
pub struct Allowance {
    rates: Rates,
    of: Payer,
}

/// Whose allowances are taken from.
#[derive(Clone)]
enum Payer {
    Service(Arc<str>),
    Visitor {
        /// The signed-in user.
        user: Option<Arc<str>>,
        address: Arc<str>,
    },
}

impl Rates {
    /// As configured; nobody has asked anything yet.
    pub fn new(settings: &config::Rate, clock: &Clock) -> Rates {
        let kinds = |mutations, operations| Kinds {
            mutations: Limiter::a_minute(mutations, clock),
            operations: Limiter::a_minute(operations, clock),
        };
        Rates(Arc::new(Inner {
            users: kinds(settings.user_mutations, settings.user_operations),
            addresses: kinds(settings.address_mutations, settings.address_operations),
            services: kinds(settings.service_mutations, settings.service_operations),
            weighing: Mutex::default(),
            refused: Counter::default(),
        }))
    }

    /// What `caller` may ask from `address`.
    pub fn of(&self, caller: &Caller, address: IpAddr) -> Allowance {
        let signed_in = caller.role != Role::Anonymous;
        let of = match caller.role {
            Role::Service | Role::Admin => Payer::Service(caller.name().into()),
            Role::Anonymous | Role::User | Role::Analyst => Payer::Visitor {
                user: signed_in.then(|| caller.name().into()),
                address: network(address).to_string().into(),
            },
        };
        Allowance {
            rates: self.clone(),
            of,
        }
    }

    /// Puts what is counted into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "tallyboard_rate_limited",
            "Requests refused because their caller had asked too much",
            self.0.refused.clone(),
        );
    }
}

impl Allowance {
    /// The one that a request bears.
    pub fn of_request(request: &Request) -> Option<Allowance> {
        Allowance::of_data(&request.data)
    }

    /// The one among what a socket's requests have in common.
    pub fn of_data(data: &Data) -> Option<Allowance> {
        let allowance = data.get(&TypeId::of::<Allowance>())?;
        allowance.downcast_ref::<Allowance>().cloned()
    }

    /// Takes what a request costs from all allowances that it touches, or from none and says when there will be enough.
    pub fn spend(&self, cost: Cost) -> Result<(), Error> {
        let inner = &*self.rates.0;
        let limits = match &self.of {
            Payer::Service(name) => [inner.services.limiting(cost).map(|limiter| (limiter, name)), None],
            Payer::Visitor { user, address } => [
                user.as_ref()
                    .and_then(|user| Some((inner.users.limiting(cost)?, user))),
                inner.addresses.limiting(cost).map(|limiter| (limiter, address)),
            ],
        };
        let limits = limits.iter().flatten();
        let _weighing = inner.weighing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wait = Duration::ZERO;
        for (limiter, name) in limits.clone() {
            match limiter.look(name, cost.amount()) {
                Ok(()) => {}
                Err(Denied::Until(until)) => wait = wait.max(until),
                Err(Denied::Never(most)) => {
                    inner.refused.inc();
                    return Err(Error::BadUserInput(format!(
                        "the document has {} mutations, and {most} a minute are served; ask in several requests",
                        cost.amount()
                    )));
                }
            }
        }
        if !wait.is_zero() {
            inner.refused.inc();
            return Err(Error::RateLimited(wait));
        }
        limits.for_each(|(limiter, name)| limiter.take(name, cost.amount()));
        Ok(())
    }
}

impl Kinds {
    fn limiting(&self, cost: Cost) -> Option<&Limiter> {
        match cost {
            Cost::Mutations(_) => self.mutations.as_ref(),
            Cost::Operation => self.operations.as_ref(),
        }
    }
}

/// What counts as one address: of IPv6 the network of a site, since whoever has one address there has them all.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests;
