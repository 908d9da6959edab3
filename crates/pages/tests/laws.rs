//! What a file of pages has, keeps and refuses, told by the files of `testdata`. `REWRITE=1 cargo test` writes the answers.
//!
//! ```text
//! write body=N [step=N] [tail=T]  writes a file: N bytes of body, in appends of `step` bytes. Prints where its parts are
//! open body=N [memory=PAGES]      opens the body, with memory for some pages; as many as it has by default
//! read at=N len=N                 reads a part of the body. Prints how often, and how much, the disk is read
//! damage byte=N                   flips a bit of the file; a second time, it undoes this
//! cut len=N                       cuts the file
//! fail                            lets each read of the disk fail; `repair` ends this
//! ```

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;

use datadriven::TestCase;
use ilion_env::{Env, FaultEnv, MemEnv, PageBudget};
use ilion_pages::{CRC_LEN, PAGE_LEN, Pages, PagesWriter, paged_length};

const PATH: &str = "pages";

/// The files, and the body that is open.
struct Script {
    disk: MemEnv,
    env: Arc<FaultEnv>,
    body: Vec<u8>,
    pages: Option<Pages>,
}

fn number(test: &TestCase, name: &str) -> Option<usize> {
    test.args.get(name)?.first()?.parse().ok()
}

impl Script {
    fn new() -> Self {
        let disk = MemEnv::new(1);
        Self {
            env: FaultEnv::new(disk.shared()),
            disk,
            body: Vec::new(),
            pages: None,
        }
    }

    fn write(&mut self, test: &TestCase) -> String {
        let len = number(test, "body").unwrap();
        self.body = (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let path = Path::new(PATH);
        if self.disk.exists(path) {
            self.disk.remove_file(path).unwrap();
        }
        let mut writer = PagesWriter::new(self.disk.create(path).unwrap());
        for bytes in self.body.chunks(number(test, "step").unwrap_or(PAGE_LEN)) {
            writer.buffer().extend_from_slice(bytes);
            writer.flush_if_large().unwrap();
        }
        let tail = test.args.get("tail").map_or("", |words| &words[0]);
        writer.finish(tail.as_bytes()).unwrap();
        let file = self.disk.read_all(path, u64::MAX).unwrap();
        assert!(file.starts_with(&self.body));
        let tail_at = usize::try_from(paged_length(len as u64).unwrap()).unwrap();
        format!(
            "body: 0 to {len}\nCRCs: {len} to {tail_at}, one for each of {} pages\ntail: {:?}\n",
            (tail_at - len) / CRC_LEN,
            String::from_utf8_lossy(&file[tail_at..])
        )
    }

    fn open(&mut self, test: &TestCase) -> String {
        let len = number(test, "body").unwrap();
        let room = number(test, "memory").unwrap_or(len.div_ceil(PAGE_LEN));
        let budget = Box::leak(Box::new(PageBudget::of((room * PAGE_LEN) as u64)));
        let file = self.env.open_read(Path::new(PATH)).unwrap();
        self.pages = Pages::within(file, len as u64, budget);
        match self.pages {
            Some(_) => String::new(),
            None => "refused: the file is too short for this body\n".to_owned(),
        }
    }

    fn read(&self, test: &TestCase) -> String {
        let (at, len) = (number(test, "at").unwrap(), number(test, "len").unwrap());
        let before = self.disk.served();
        let read = self.pages.as_ref().unwrap().bytes(at as u64, len);
        let after = self.disk.served();
        let outcome = match read {
            Ok(found) => {
                assert!(*found == self.body[at..at + len], "the bytes that were written");
                "ok".to_owned()
            }
            Err(error) => error.to_string(),
        };
        format!(
            "{outcome}\ndisk: {} reads, {} bytes\n",
            after.0 - before.0,
            after.1 - before.1
        )
    }

    fn run(&mut self, test: &TestCase) -> String {
        let path = Path::new(PATH);
        match test.directive.as_str() {
            "write" => return self.write(test),
            "open" => return self.open(test),
            "read" => return self.read(test),
            "damage" => {
                let at = number(test, "byte").unwrap() as u64;
                self.disk.corrupt_byte(path, at, 1).unwrap();
            }
            "cut" => {
                let len = number(test, "len").unwrap() as u64;
                self.disk.open_append(path).unwrap().truncate(len).unwrap();
            }
            "fail" => self.env.add("fail read \"pages\"").unwrap(),
            "repair" => self.env.clear(),
            other => panic!("unknown directive {other}"),
        }
        String::new()
    }
}

#[test]
fn files_of_pages_are_written_kept_and_refused_as_told() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let mut script = Script::new();
        file.run(|test| script.run(test));
    });
}
