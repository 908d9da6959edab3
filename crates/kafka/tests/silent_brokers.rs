//! Brokers that do not answer, and those that are not there.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ilion_kafka::{Error, Missing, Options, Security, Topic};

fn open(broker: String, security: Security) -> Error {
    let options = Options {
        brokers: vec![broker],
        security,
        request_timeout: Duration::from_millis(100),
    };
    match Topic::open(&Arc::new(options), "shop.ks.t", Missing::Refuse) {
        Ok(_) => panic!("there is no broker"),
        Err(error) => error,
    }
}

#[test]
fn a_broker_that_accepts_and_is_silent_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let error = open(address.clone(), Security::default());
    let Error::NoBroker { problem, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(problem, &format!("broker {address} did not answer within 100ms"));
}

#[test]
fn an_address_without_a_broker_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = open(gone.to_string(), Security::default()).to_string();
    assert!(
        error.starts_with(&format!("no broker of {gone} answers: ")),
        "{error}"
    );
}

#[test]
fn certificates_that_are_none_are_refused_before_a_broker_is_asked() {
    let security = Security {
        is_encrypted: true,
        issuers: Some(b"no certificate".to_vec()),
        credentials: None,
    };
    let error = open("127.0.0.1:1".to_owned(), security).to_string();
    assert_eq!(
        error,
        "certificates of who issues those of the brokers: there is none"
    );
}

#[test]
fn a_name_that_no_topic_may_have_is_refused() {
    let options = Options {
        brokers: vec!["127.0.0.1:1".to_owned()],
        security: Security::default(),
        request_timeout: Duration::from_millis(100),
    };
    let refused = Topic::open(&Arc::new(options), "shop.Käse", Missing::Refuse);
    assert!(matches!(refused, Err(Error::Refused(_))));
}
