//! Uploads chunks of files to a destination, on several threads. Each thread has one chunk in memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use ilion_env::{Access, Env, ReadFile};
use parking_lot::Mutex;

use crate::catalogue::Objects;
use crate::manifest::chunk_count;
use crate::{Error, Hash, Pace, Place, Progress, Result};

/// The parameters of all uploads.
pub(crate) struct Uploads<'a> {
    pub env: &'a Arc<dyn Env>,
    pub place: &'a dyn Place,
    pub pace: &'a Pace,
    pub progress: &'a dyn Progress,
    /// The chunks that are at the destination.
    pub objects: &'a Mutex<Objects>,
    pub chunk_bytes: u32,
    pub threads: usize,
}

/// A chunk of a file.
struct Piece {
    file: usize,
    index: usize,
    offset: u64,
    len: usize,
}

/// What was uploaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub bytes: u64,
    pub objects: u64,
}

impl Uploads<'_> {
    /// Uploads the chunks of these files that are not at the destination. Returns the chunks of each file, and what was uploaded.
    pub(crate) fn run(&self, files: &[(&Path, u64)]) -> Result<(Vec<Vec<Hash>>, Moved)> {
        let pieces = self.pieces(files);
        let next = AtomicUsize::new(0);
        let (bytes, objects) = (AtomicU64::new(0), AtomicU64::new(0));
        let hashes: Mutex<HashMap<(usize, usize), Hash>> = Mutex::default();
        let failure: Mutex<Option<Error>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    let mut open: Option<(usize, Arc<dyn ReadFile>)> = None;
                    while failure.lock().is_none()
                        && let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        match self.piece(files, piece, &mut open) {
                            Ok((hash, is_new)) => {
                                hashes.lock().insert((piece.file, piece.index), hash);
                                if is_new {
                                    bytes.fetch_add(piece.len as u64, Ordering::Relaxed);
                                    objects.fetch_add(1, Ordering::Relaxed);
                                }
                            }
                            Err(error) => {
                                failure.lock().get_or_insert(error);
                            }
                        }
                    }
                });
            }
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        let hashes = hashes.into_inner();
        let mut chunks: Vec<Vec<Hash>> = vec![Vec::new(); files.len()];
        // In the order of pieces: the chunks of each file from its start.
        for piece in &pieces {
            chunks[piece.file].extend(hashes.get(&(piece.file, piece.index)));
        }
        let moved = Moved {
            bytes: bytes.into_inner(),
            objects: objects.into_inner(),
        };
        Ok((chunks, moved))
    }

    fn pieces(&self, files: &[(&Path, u64)]) -> Vec<Piece> {
        let chunk_bytes = u64::from(self.chunk_bytes);
        let pieces = files.iter().enumerate().flat_map(|(file, (_, bytes))| {
            (0..chunk_count(*bytes, self.chunk_bytes)).map(move |index| {
                let offset = index * chunk_bytes;
                Piece {
                    file,
                    index: index as usize,
                    offset,
                    len: (bytes - offset).min(chunk_bytes) as usize,
                }
            })
        });
        pieces.collect()
    }

    /// Reads a chunk and uploads it unless the destination has it. Returns true if it was uploaded.
    fn piece(
        &self,
        files: &[(&Path, u64)],
        piece: &Piece,
        open: &mut Option<(usize, Arc<dyn ReadFile>)>,
    ) -> Result<(Hash, bool)> {
        let file = match open {
            Some((index, file)) if *index == piece.file => file.clone(),
            _ => {
                let file = self.env.open_read(files[piece.file].0)?;
                file.advise(Access::Sequential);
                *open = Some((piece.file, file.clone()));
                file
            }
        };
        self.pace.wait(piece.len as u64);
        let mut bytes = vec![0; piece.len];
        file.read_exact_at(piece.offset, &mut bytes)?;
        let hash = Hash::of(&bytes);
        let len = piece.len as u64;
        let is_there = self.objects.lock().get(&hash) == Some(&len);
        if !is_there {
            self.place.write(&hash.key(), Bytes::from(bytes))?;
            self.objects.lock().insert(hash, len);
        }
        self.progress.done(len);
        Ok((hash, !is_there))
    }
}
