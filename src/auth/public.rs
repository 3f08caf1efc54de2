//! Reading public keys: PEM, one or several after another, or a JWKS as identity providers publish it.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

use super::keys::Key;
use super::token::Rules;

/// The smallest RSA modulus, in bytes: 2,048 bits.
const LEAST_MODULUS: usize = 256;

/// A point of the curve P-256, uncompressed, in bytes.
const POINT: usize = 65;

/// All keys of a file that can be used; what a JWKS holds for other purposes is left out.
pub fn read(text: &str, rules: &Rules) -> Result<Vec<Key>, String> {
    match text.trim_start().starts_with('{') {
        true => jwks(text, rules),
        false => pem(text, rules),
    }
}

fn jwks(text: &str, rules: &Rules) -> Result<Vec<Key>, String> {
    let broken = |error: serde_json::Error| format!("is no JWKS: {error}");
    let value: serde_json::Value = serde_json::from_str(text).map_err(broken)?;
    let set = match value.get("keys") {
        Some(_) => serde_json::from_value::<JwkSet>(value).map_err(broken)?.keys,
        None => vec![serde_json::from_value::<Jwk>(value).map_err(broken)?],
    };
    let many = set.len();
    let mut keys = Vec::new();
    for jwk in set {
        let Some(algorithm) = algorithm(&jwk) else {
            tracing::debug!(kid = ?jwk.common.key_id, "a key for something else than RS256 or ES256");
            continue;
        };
        let named = jwk
            .common
            .key_id
            .clone()
            .unwrap_or_else(|| "without a kid".into());
        let bad = |reason: &str| format!("holds a key ({named}) that {reason}");
        let key = DecodingKey::from_jwk(&jwk).map_err(|_| bad("cannot be read"))?;
        is_strong(algorithm, &key).map_err(bad)?;
        keys.push(Key::public(jwk.common.key_id, algorithm, key, rules));
    }
    if keys.is_empty() && many > 0 {
        return Err("holds no public key for RS256 or ES256".into());
    }
    Ok(keys)
}

/// What a key is for, if it is for signatures of a kind that is taken here.
fn algorithm(jwk: &Jwk) -> Option<Algorithm> {
    if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return None;
    }
    match (&jwk.algorithm, jwk.common.key_algorithm) {
        (AlgorithmParameters::RSA(_), None | Some(KeyAlgorithm::RS256)) => Some(Algorithm::RS256),
        (AlgorithmParameters::EllipticCurve(key), None | Some(KeyAlgorithm::ES256))
            if key.curve == EllipticCurve::P256 =>
        {
            Some(Algorithm::ES256)
        }
        _ => None,
    }
}

fn pem(text: &str, rules: &Rules) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    for block in text.split_inclusive("-----END ") {
        let Some(begin) = block.find("-----BEGIN ") else {
            continue;
        };
        let block = &block[begin..];
        let label = block["-----BEGIN ".len()..]
            .split("-----")
            .next()
            .unwrap_or_default();
        if label.contains("PRIVATE") {
            return Err("holds a private key, which this server must not know; `openssl pkey -pubout` makes the public one of it".into());
        }
        if !matches!(label, "PUBLIC KEY" | "RSA PUBLIC KEY") {
            return Err(format!(
                "holds a {label}; only public keys are read (`openssl x509 -pubkey` takes one out of a certificate)"
            ));
        }
        // The split has cut the label of the end off.
        let whole = format!("{block}{label}-----\n");
        let (algorithm, key) = match DecodingKey::from_ec_pem(whole.as_bytes()) {
            Ok(key) => (Algorithm::ES256, key),
            Err(_) => match DecodingKey::from_rsa_pem(whole.as_bytes()) {
                Ok(key) => (Algorithm::RS256, key),
                Err(_) => return Err("holds a key that is neither RSA nor on an elliptic curve".into()),
            },
        };
        is_strong(algorithm, &key).map_err(|reason| format!("holds a key that {reason}"))?;
        keys.push(Key::public(None, algorithm, key, rules));
    }
    if keys.is_empty() {
        return Err("is neither PEM nor a JWKS".into());
    }
    Ok(keys)
}

/// Refuses at once what the signature check would refuse for ever.
fn is_strong(algorithm: Algorithm, key: &DecodingKey) -> Result<(), &'static str> {
    use jsonwebtoken::DecodingKeyKind::{RsaModulusExponent, SecretOrDer};
    match (algorithm, key.kind()) {
        (Algorithm::ES256, SecretOrDer(point)) if point.len() != POINT => Err("is not on the curve P-256"),
        // The modulus is all but a few bytes of what is encoded.
        (Algorithm::RS256, RsaModulusExponent { n: modulus, .. } | SecretOrDer(modulus))
            if modulus.len() < LEAST_MODULUS =>
        {
            Err("has less than 2,048 bits")
        }
        _ => Ok(()),
    }
}
