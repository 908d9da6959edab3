//! A registry of schemas, played by a thread.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use ilion_kafka::{Error, Registry, RegistryOptions};

const SCHEMA: &str = r#"{"type":"record","name":"A","fields":[]}"#;

/// What a registry was asked: the head, and the body.
type Asked = (String, String);

/// Answers one connection after another with status and body, and hands out what was asked.
fn answering(answers: Vec<(u16, String)>) -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    thread::spawn(move || {
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(bytes) = line.strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
                head.push_str(&line);
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            let answer = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            reader.into_inner().write_all(answer.as_bytes()).unwrap();
            sender.send((head, String::from_utf8(sent).unwrap())).unwrap();
        }
    });
    (url, asked)
}

fn registry(url: &str) -> Registry {
    let options = RegistryOptions {
        url: url.to_owned(),
        login: Some(("ann".to_owned(), "secret".to_owned())),
        issuers: None,
        request_timeout: Duration::from_secs(60),
    };
    Registry::new(options).unwrap()
}

fn refusal(status: u16, body: &str) -> String {
    let (url, _asked) = answering(vec![(status, body.to_owned())]);
    let refused = registry(&url).register("shop.ks.t-value", SCHEMA, &mut |told| panic!("{told}"));
    refused.unwrap_err().to_string()
}

#[test]
fn a_schema_is_registered_for_its_subject_with_the_login() {
    let (url, asked) = answering(vec![(200, r#"{"id":7}"#.to_owned())]);
    let mut registry = registry(&format!("{url}/apis/ccompat/v7/"));
    let number = registry.register("shop.ks.t-value", SCHEMA, &mut |told| panic!("{told}"));
    assert_eq!(number.unwrap(), 7);
    let (head, body) = asked.recv().unwrap();
    assert!(
        head.starts_with("POST /apis/ccompat/v7/subjects/shop.ks.t-value/versions HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("content-type: application/vnd.schemaregistry.v1+json\r\n"),
        "{head}"
    );
    assert!(
        head.contains("authorization: Basic YW5uOnNlY3JldA==\r\n"),
        "{head}"
    );
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body, serde_json::json!({ "schema": SCHEMA }));
}

#[test]
fn a_registry_that_fails_later_is_asked_again() {
    let answer = |status, body: &str| (status, body.to_owned());
    let (url, _asked) = answering(vec![
        answer(200, r#"{"id":1}"#),
        answer(503, r#"{"error_code":50301,"message":"no leader"}"#),
        answer(200, r#"{"id":2}"#),
    ]);
    let (mut registry, mut told) = (registry(&url), Vec::new());
    registry.register("a", SCHEMA, &mut |_| {}).unwrap();
    let number = registry.register("b", SCHEMA, &mut |trouble| told.push(trouble.to_owned()));
    assert_eq!(number.unwrap(), 2);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("503") && told[0].contains("no leader"),
        "{told:?}"
    );
}

#[test]
fn refusals_say_who_must_act() {
    for (status, body, expected) in [
        (
            401,
            r#"{"message":"who are you"}"#,
            "it refused the login (401 Unauthorized): who are you",
        ),
        (
            409,
            r#"{"message":"READER_FIELD"}"#,
            "set another compatibility for the subject",
        ),
        (
            422,
            r#"{"message":"Invalid schema"}"#,
            "it refused the schema of shop.ks.t-value (422",
        ),
        (200, "<html>", "is it a schema registry?"),
        (200, r#"{"id":4294967296}"#, "is it a schema registry?"),
        (500, "", "500 Internal Server Error: without a reason"),
    ] {
        let refused = refusal(status, body);
        assert!(refused.contains(expected), "{refused}");
    }
    let endless = "x".repeat(2 << 20);
    assert!(refusal(200, &endless).contains("its answer is too long"));
}

#[test]
fn an_address_without_a_registry_is_an_error_the_first_time() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = registry(&format!("http://{gone}")).register("a", SCHEMA, &mut |told| panic!("{told}"));
    assert!(matches!(refused, Err(Error::Registry { .. })), "{refused:?}");
}

#[test]
fn urls_that_are_none_or_have_a_password_are_refused() {
    for url in [
        "registry:8081",
        "ftp://registry",
        "http://ann:secret@registry:8081",
    ] {
        let options = RegistryOptions {
            url: url.to_owned(),
            ..RegistryOptions::default()
        };
        assert!(matches!(Registry::new(options), Err(Error::Refused(_))), "{url}");
    }
}
