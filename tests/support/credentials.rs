//! Certificates, keys and tokens of one bench.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Files for the API server, and what a client needs.
pub struct Credentials {
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub service_account_key: PathBuf,
    pub service_account_public_key: PathBuf,
    pub tokens: PathBuf,
    pub token: String,
}

impl Credentials {
    /// Writes them to a directory. Elliptic curves: the API server would take a second
    /// or more for RSA keys of its own.
    pub fn create(directory: &Path) -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new([]).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "bench");
        let authority_certificate = authority.self_signed(&authority_key).expect("a certificate");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let certificate = CertificateParams::new(names)
            .and_then(|parameters| parameters.signed_by(&key, &issuer))
            .expect("a certificate");
        let service_account_key = KeyPair::generate().expect("a key");
        let token = random_token();
        let write = |name: &str, content: &str| {
            let path = directory.join(name);
            std::fs::write(&path, content).expect("a file of the bench");
            path
        };
        Self {
            authority: write("ca.crt", &authority_certificate.pem()),
            certificate: write("apiserver.crt", &certificate.pem()),
            key: write("apiserver.key", &key.serialize_pem()),
            service_account_key: write("sa.key", &service_account_key.serialize_pem()),
            service_account_public_key: write("sa.pub", &service_account_key.public_key_pem()),
            tokens: write("tokens.csv", &format!("{token},admin,admin,system:masters\n")),
            token,
        }
    }

    /// A kubeconfig file for the administrator.
    pub fn write_kubeconfig(&self, path: &Path, server: &str) {
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "admin"}}],
            "clusters": [{"name": "bench", "cluster": {
                "server": server,
                "certificate-authority": self.authority,
            }}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
        });
        std::fs::write(path, kubeconfig.to_string()).expect("a file of the bench");
    }
}

fn random_token() -> String {
    use sha2::Digest as _;
    // A new key is as random as anything here.
    let key = KeyPair::generate().expect("a key");
    let digest = sha2::Sha256::digest(key.serialize_der());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
