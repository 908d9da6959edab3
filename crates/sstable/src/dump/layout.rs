//! JSON text in the layouts of `sstabledump`: one partition per line, or indented.
//!
//! Compat: the indentation is that of Jackson's pretty printer with Cassandra's `CompactIndenter`. Objects and arrays have a switch
//! each; callers set them where Cassandra does, even where the result looks odd.

use std::fmt::Write as _;

use ilion_types::json::print_string;

const INDENT: &str = "  ";

/// The layout of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One partition per line, without spaces.
    Lines,
    /// An array of indented partitions.
    Indented,
}

/// Writes JSON.
#[derive(Debug)]
pub(super) struct JsonWriter {
    pub(super) out: String,
    layout: Layout,
    /// The number of members of each open object or array.
    open: Vec<usize>,
    /// True if the members of objects stay on their line.
    pub(super) compact_objects: bool,
    /// True if the elements of arrays stay on their line.
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

    /// Starts an element of an array.
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

    /// Starts a member of an object; its value comes next.
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
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{number}");
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }
}
