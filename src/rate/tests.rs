use super::*;
use crate::ids::UserId;

fn rates(change: impl FnOnce(&mut config::Rate)) -> (Rates, Clock) {
    let clock = Clock::manual(chrono::DateTime::from_timestamp_millis(1_800_000_000_000).unwrap());
    let mut settings = config::Rate {
        user_mutations: 3,
        user_operations: 0,
        address_mutations: 5,
        address_operations: 0,
        service_mutations: 0,
        service_operations: 0,
    };
    change(&mut settings);
    (Rates::new(&settings, &clock), clock)
}

fn caller(role: Role, user: &str) -> Caller {
    Caller {
        user: Some(UserId::parse(user).unwrap()),
        role,
    }
}

fn mutations(many: u32) -> Cost {
    Cost::Mutations(many.try_into().unwrap())
}

#[test]
fn what_is_refused_by_one_allowance_is_taken_from_none() {
    let (rates, clock) = rates(|_| {});
    let here = "192.0.2.1".parse().unwrap();
    let (amy, bob) = (caller(Role::User, "amy"), caller(Role::User, "bob"));
    let (amy, bob) = (rates.of(&amy, here), rates.of(&bob, here));
    amy.spend(mutations(3)).unwrap();
    // Amy has nothing left; what she tries costs her address nothing.
    for _ in 0..100 {
        assert!(matches!(amy.spend(mutations(1)), Err(Error::RateLimited(_))));
    }
    bob.spend(mutations(2)).unwrap();
    // Now the address has nothing left; what bob tries costs him nothing.
    let Err(Error::RateLimited(wait)) = bob.spend(mutations(1)) else {
        panic!("more than the address may")
    };
    assert_eq!(wait, Duration::from_secs(12));
    clock.set(clock.now() + wait);
    bob.spend(mutations(1)).unwrap();
}

#[test]
fn the_longest_wait_is_told() {
    let (rates, _) = rates(|settings| settings.address_mutations = 3);
    let amy = rates.of(&caller(Role::User, "amy"), "192.0.2.1".parse().unwrap());
    let elsewhere = rates.of(&caller(Role::User, "amy"), "192.0.2.2".parse().unwrap());
    let bob = rates.of(&caller(Role::User, "bob"), "192.0.2.1".parse().unwrap());
    elsewhere.spend(mutations(2)).unwrap();
    bob.spend(mutations(3)).unwrap();
    // One is left to amy of her own three, but nothing to her address.
    assert!(matches!(amy.spend(mutations(2)), Err(Error::RateLimited(wait)) if wait.as_secs() == 40));
}

#[test]
fn backends_have_an_allowance_of_their_own() {
    let (rates, _) = rates(|settings| settings.service_mutations = 1_000);
    let here = "192.0.2.1".parse().unwrap();
    let shop = rates.of(&caller(Role::Service, "shop"), here);
    shop.spend(mutations(1_000)).unwrap();
    assert!(shop.spend(mutations(1)).is_err());
    rates
        .of(&caller(Role::User, "shop"), here)
        .spend(mutations(1))
        .unwrap();
    rates
        .of(&caller(Role::Admin, "eve"), here)
        .spend(mutations(1_000))
        .unwrap();
}

#[test]
fn a_network_of_ipv6_counts_as_one_address() {
    for (address, counted) in [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::1", "2001:db8:1:2::"),
    ] {
        assert_eq!(network(address.parse().unwrap()).to_string(), counted);
    }
}
