//! Who signs tokens: keys that are made anew for each test.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RsaKeyPair};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// A key, and what others may know of it.
pub struct Signer {
    algorithm: Algorithm,
    key: EncodingKey,
    kid: Option<&'static str>,
    /// As PEM; empty for a secret.
    pub private: String,
    /// As PEM; of a secret the secret itself.
    pub public: String,
}

impl Signer {
    pub fn rsa() -> Signer {
        Signer::rsa_of(KeySize::Rsa2048)
    }

    pub fn rsa_of(size: KeySize) -> Signer {
        let pair = RsaKeyPair::generate(size).unwrap();
        let private: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let public: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let private = pem("PRIVATE KEY", private.as_ref());
        Signer {
            algorithm: Algorithm::RS256,
            key: EncodingKey::from_rsa_pem(private.as_bytes()).unwrap(),
            kid: None,
            private,
            public: pem("PUBLIC KEY", public.as_ref()),
        }
    }

    pub fn ec() -> Signer {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let private = pair.to_pkcs8v1().unwrap();
        let public: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let private = pem("PRIVATE KEY", private.as_ref());
        Signer {
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_pem(private.as_bytes()).unwrap(),
            kid: None,
            private,
            public: pem("PUBLIC KEY", public.as_ref()),
        }
    }

    pub fn secret(secret: &str) -> Signer {
        Signer {
            algorithm: Algorithm::HS256,
            key: EncodingKey::from_secret(secret.as_bytes()).unwrap(),
            kid: None,
            private: String::new(),
            public: secret.into(),
        }
    }

    /// Its tokens say that they are by the key of that name.
    pub fn named(self, kid: &'static str) -> Signer {
        Signer {
            kid: Some(kid),
            ..self
        }
    }

    /// As an identity provider publishes it.
    pub fn jwk(&self) -> Value {
        let mut jwk = json!(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap());
        jwk["use"] = "sig".into();
        jwk["kid"] = self.kid.into();
        jwk
    }

    pub fn token(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = self.kid.map(str::to_owned);
        encode(&header, claims, &self.key).unwrap()
    }

    /// What somebody makes of these claims who signs nothing.
    pub fn unsigned(claims: &Value) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        format!(
            "{}.{}.",
            part(&json!({ "alg": "none", "typ": "JWT" })),
            part(claims)
        )
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}
