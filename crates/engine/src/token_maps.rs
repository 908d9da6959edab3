//! Makes missing or damaged checksums and token maps, one after another, in a thread of its own.
//!
//! SSTables that Cassandra wrote have neither. Until their map is made they are read through filter, summary and index.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_sstable::SSTable;

use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::work::Work;

impl Shared {
    /// Requests the missing maps, unless they are being made.
    pub(crate) fn ask_for_token_maps(&self) {
        let is_making = &self.background.is_making_token_maps;
        if self.without_token_map().next().is_some() && !is_making.swap(true, Ordering::AcqRel) {
            self.background.send(Work::MakeTokenMaps);
        }
    }

    /// Makes all missing checksums and maps. A failure is logged, and reads of the SSTable go without the map.
    pub(crate) fn make_token_maps(&self) {
        self.background
            .is_making_token_maps
            .store(false, Ordering::Release);
        let missing: Vec<_> = self.without_token_map().collect();
        for live in missing {
            if self.pacer.is_stopping() {
                return;
            }
            // Checksums first, so that the map is made from an index whose checksums are known.
            if live.sstable.wants_checksums() {
                self.make_checksums(&live);
            }
            if !live.sstable.wants_token_map() {
                continue;
            }
            let started_nanos = self.env.monotonic_nanos();
            let made = live.sstable.make_token_map(&mut || !self.pacer.is_stopping());
            let millis = self.env.monotonic_nanos().saturating_sub(started_nanos) / 1_000_000;
            let sstable = live.descriptor();
            match made {
                Ok(true) => tracing::info!(%sstable, millis, "its token map was made"),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%sstable, %error, "its token map cannot be made; its index is used");
                }
            }
        }
    }

    /// Makes checksums of the components in their current state. Only `ilion sstable verify` finds earlier damage.
    fn make_checksums(&self, live: &LiveSSTable) {
        let made = live.sstable.make_checksums(&mut || !self.pacer.is_stopping());
        let sstable = live.descriptor();
        match made {
            Ok(true) => tracing::info!(%sstable, "its checksums were made"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%sstable, %error, "its checksums cannot be made; damage of its index may not be seen");
            }
        }
    }

    fn without_token_map(&self) -> impl Iterator<Item = Arc<LiveSSTable>> {
        self.stores().into_iter().flat_map(|store| {
            let view = store.view();
            let lacks = |sstable: &SSTable| sstable.wants_token_map() || sstable.wants_checksums();
            let missing = view.sstables.iter().filter(|live| lacks(&live.sstable));
            missing.cloned().collect::<Vec<_>>()
        })
    }
}
