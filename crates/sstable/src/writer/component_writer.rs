//! Writes a component from start to end, in large appends.

use ilion_codec::Slab;
use ilion_env::{Env, WriteFile};

use crate::checksums::{Checksums, Summing};
use crate::{Component, Descriptor, Result};

/// Number of bytes that are collected before they are written.
const APPEND_BYTES: usize = 256 << 10;

pub(super) struct ComponentWriter {
    component: Component,
    file: Box<dyn WriteFile>,
    summing: Summing,
    buffer: Slab,
    flushed: u64,
}

impl ComponentWriter {
    pub(super) fn create(env: &dyn Env, descriptor: &Descriptor, component: &Component) -> Result<Self> {
        Ok(Self {
            component: component.clone(),
            file: env.create(&descriptor.path(component))?,
            summing: Summing::default(),
            buffer: Slab::default(),
            flushed: 0,
        })
    }

    /// Offset of the next byte.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// The buffer for appending.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Slab {
        &mut self.buffer
    }

    /// Writes the buffer to the file if it is large.
    #[inline]
    pub(super) fn flush_if_large(&mut self) -> Result<()> {
        if self.buffer.len() >= APPEND_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<()> {
        self.summing.add(self.buffer.as_slice());
        self.file.append(self.buffer.as_slice())?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest, and syncs.
    pub(super) fn finish(mut self, checksums: &mut Checksums) -> Result<()> {
        self.flush()?;
        checksums.add(self.component, self.summing.finish());
        Ok(self.file.sync()?)
    }
}
