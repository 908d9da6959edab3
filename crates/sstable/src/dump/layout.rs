//! JSON text as `sstabledump` lays it out: one partition a line, or indented.
//!
//! Compat: what is indented is as Jackson's pretty printer does it under Cassandra's `CompactIndenter`, with one switch for
//! objects and one for arrays; the callers turn them at the places where Cassandra does, odd as some of them are.

use std::fmt::Write as _;

use ilion_types::json::print_string;

const INDENT: &str = "  ";

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One partition a line, without spaces.
    Lines,
    /// An array of indented partitions.
    Indented,
}

/// Writes JSON.
#[derive(Debug)]
pub(super) struct JsonWriter {
    pub(super) out: String,
    layout: Layout,
    /// For each open object or array: how many members it has.
    open: Vec<usize>,
    /// Members of objects stay on their line.
    pub(super) compact_objects: bool,
    /// Elements of arrays stay on their line.
    pub(super) compact_arrays: bool,
}

impl JsonWriter {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            out: String::new(),
            layout,
            open: Vec::new(),
            compact_objects: false,
            compact_arrays: false,
        }
    }

    fn indent(&mut self, is_compact: bool) {
        if self.layout == Layout::Lines {
            return;
        }
        if is_compact {
            self.out.push(' ');
            return;
        }
        self.out.push('\n');
        for _ in 0..self.open.len() {
            self.out.push_str(INDENT);
        }
    }

    fn separate(&mut self, is_compact: bool) {
        if let Some(members) = self.open.last_mut() {
            *members += 1;
            if *members > 1 {
                self.out.push(',');
            }
            self.indent(is_compact);
        }
    }

    fn close(&mut self, is_compact: bool, bracket: char) {
        let members = self.open.pop().unwrap_or(0);
        self.indent(is_compact || members == 0);
        self.out.push(bracket);
    }

    /// Before each element of an array.
    pub(super) fn element(&mut self) {
        self.separate(self.compact_arrays);
    }

    pub(super) fn begin_object(&mut self) {
        self.out.push('{');
        self.open.push(0);
    }

    pub(super) fn end_object(&mut self) {
        self.close(self.compact_objects, '}');
    }

    pub(super) fn begin_array(&mut self) {
        self.out.push('[');
        self.open.push(0);
    }

    pub(super) fn end_array(&mut self) {
        self.close(self.compact_arrays, ']');
    }

    /// The name of the member whose value comes next.
    pub(super) fn name(&mut self, name: &str) {
        self.separate(self.compact_objects);
        self.string(name);
        self.out.push_str(match self.layout {
            Layout::Lines => ":",
            Layout::Indented => " : ",
        });
    }

    pub(super) fn string(&mut self, text: &str) {
        print_string(text, &mut self.out);
    }

    pub(super) fn number(&mut self, number: impl std::fmt::Display) {
        // Strings take all that is written to them.
        let _ = write!(self.out, "{number}");
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }
}
