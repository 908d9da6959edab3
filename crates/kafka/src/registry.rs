//! A registry of schemas, which gives each schema a number: `POST /subjects/SUBJECT/versions`, as Confluent's registry and those that
//! speak its protocol (Apicurio, Karapace, Redpanda) understand it.
//!
//! ```text
//! datum in a record := 0x00, number: u32 (big-endian), datum of Avro
//! ```
//! Registering a schema again returns the same number. A registry that does not answer is asked again without end, except
//! the first time: then its address may be wrong.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::Error;

const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// Longest answer that is read: errors may repeat the schema.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum number of characters of an error of the registry that are shown.
const REASON_CHARS_MAX: usize = 1000;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Where a registry is, and how to log in.
#[derive(Clone, Default)]
pub struct RegistryOptions {
    /// Its URL, with `http` or `https`; a path is a prefix of all paths.
    pub url: String,
    /// A user and its password.
    pub login: Option<(String, String)>,
    /// Certificates of the issuers to trust (PEM); `None`: those that the system trusts.
    pub issuers: Option<Vec<u8>>,
    /// A registry that does not answer within this time is asked again.
    pub request_timeout: Duration,
}

/// A registry of schemas. Its calls block.
#[derive(Clone)]
pub struct Registry {
    options: RegistryOptions,
    url: Url,
    client: Client,
    has_answered: bool,
}

/// Why a request failed.
enum Trouble {
    Passing(String),
    Final(String),
}

impl Registry {
    /// Checks the options. Sends no request yet.
    ///
    /// # Errors
    /// The URL or the certificates are invalid.
    pub fn new(options: RegistryOptions) -> Result<Self, Error> {
        let refused = |problem: String| Error::Refused(format!("schema registry: {problem}"));
        let url = Url::parse(&options.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| {
            refused(format!(
                "{:?} is no URL: expected http://HOST:PORT or https://HOST:PORT",
                options.url
            ))
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(
                "a login does not belong into the URL, where other users of this machine see it: give the user and a file with \
                 the password"
                    .to_owned(),
            ));
        }
        let mut client = Client::builder()
            .timeout(options.request_timeout)
            // Each call has a runtime of its own, and connections end with it.
            .pool_max_idle_per_host(0)
            .redirect(redirect::Policy::none());
        if url.scheme() == "http" {
            // Without TLS it does not matter whether this machine has certificates of issuers.
            client = client.tls_certs_only([]);
        } else if let Some(issuers) = &options.issuers {
            let issuers = Certificate::from_pem_bundle(issuers).map_err(|error| refused(causes(&error)))?;
            if issuers.is_empty() {
                return Err(refused("the file of issuers has no certificate".to_owned()));
            }
            client = client.tls_certs_only(issuers);
        }
        let client = client.build().map_err(|error| refused(causes(&error)))?;
        Ok(Self {
            options,
            url,
            client,
            has_answered: false,
        })
    }

    /// Registers an Avro schema for a subject, and returns its number. After an error that may pass, calls `tell` with it and tries again.
    ///
    /// # Errors
    /// The registry refuses the schema or the login, or it did not answer the first time.
    pub fn register(
        &mut self,
        subject: &str,
        schema: &str,
        tell: &mut dyn FnMut(&str),
    ) -> Result<u32, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Refused(format!("no runtime of tokio: {error}")))?;
        let mut pause = PAUSE_MIN;
        loop {
            let outcome = runtime.block_on(self.post(subject, schema));
            let of_registry = |problem: String| Error::Registry {
                url: self.options.url.clone(),
                problem,
            };
            match outcome {
                Ok(number) => {
                    self.has_answered = true;
                    return Ok(number);
                }
                Err(Trouble::Final(problem)) => return Err(of_registry(problem)),
                Err(Trouble::Passing(problem)) if !self.has_answered => return Err(of_registry(problem)),
                Err(Trouble::Passing(problem)) => {
                    tell(&format!(
                        "schema registry {}: {problem}; trying again",
                        self.options.url
                    ));
                }
            }
            // The timer is made inside of the runtime.
            runtime.block_on(async { sleep(pause).await });
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    async fn post(&self, subject: &str, schema: &str) -> Result<u32, Trouble> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["subjects", subject, "versions"]);
        }
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .header(ACCEPT, MEDIA_TYPE)
            .body(json!({ "schema": schema }).to_string());
        if let Some((user, password)) = &self.options.login {
            request = request.basic_auth(user, Some(password));
        }
        let passing = |error: reqwest::Error| Trouble::Passing(causes(&error));
        let answer = request.send().await.map_err(passing)?;
        let status = answer.status();
        let body = read(answer).await?;
        let parsed: Option<Value> = serde_json::from_slice(&body).ok();
        if status.is_success() {
            let number = parsed.as_ref().and_then(|answer| answer["id"].as_u64());
            let number = number.and_then(|number| u32::try_from(number).ok());
            return number.ok_or_else(|| {
                Trouble::Final("the answer has no number of a schema; is it a schema registry?".to_owned())
            });
        }
        let reason = parsed.as_ref().and_then(|answer| answer["message"].as_str());
        let reason: String = reason
            .unwrap_or("without a reason")
            .chars()
            .take(REASON_CHARS_MAX)
            .collect();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Trouble::Final(format!("it refused the login ({status}): {reason}"))
            }
            StatusCode::CONFLICT => Trouble::Final(format!(
                "the schema of {subject} is incompatible with the one before: {reason}; set another compatibility for the subject, or \
                 send to another topic"
            )),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Trouble::Passing(format!("{status}: {reason}"))
            }
            _ if status.is_server_error() => Trouble::Passing(format!("{status}: {reason}")),
            _ => Trouble::Final(format!("it refused the schema of {subject} ({status}): {reason}")),
        })
    }
}

async fn read(mut answer: Response) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(part) = answer
        .chunk()
        .await
        .map_err(|error| Trouble::Passing(causes(&error)))?
    {
        if body.len() + part.len() > ANSWER_BYTES_MAX {
            return Err(Trouble::Final(
                "its answer is too long; is it a schema registry?".to_owned(),
            ));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// An error with what caused it, which reqwest leaves out.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
