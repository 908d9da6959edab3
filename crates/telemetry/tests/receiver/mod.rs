//! A small collector: takes requests one after another, and hands them to the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A request that arrived.
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

/// A collector that answers its requests with these status lines, and then with 200.
pub fn collector(mut answers: Vec<&'static str>) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        answers.reverse();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let head = head.to_lowercase();
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            // Before the answer: what has been answered has been handed over.
            if sender.send(Request { head, body }).is_err() {
                return;
            }
            let status = answers.pop().unwrap_or("200 OK");
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            // A sender that stops may be gone.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (endpoint, requests)
}
