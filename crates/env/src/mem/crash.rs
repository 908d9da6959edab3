//! What survives a power loss.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::disk::{Change, Disk, Node, ROOT, Tree};
use super::file::{AtRisk, Image, MemFile, PAGE_BYTES, Page, SECTOR_BYTES};
use crate::Seeded;

/// What a power loss does to unsynced data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashRule {
    /// All unsynced data is lost.
    LoseUnsynced,
    /// All unsynced data is kept, as after kill -9.
    KeepAll,
    /// The seed decides: each page is lost, kept or torn at sector borders, and a prefix or any subset of the changed names
    /// survives.
    Seeded(u64),
}

pub(super) fn survivors(disk: &Disk, rule: CrashRule) -> Disk {
    let mut seeded = Seeded::new(if let CrashRule::Seeded(seed) = rule {
        seed
    } else {
        0
    });
    let mut tree = disk.durable.clone();
    surviving_changes(&disk.pending, rule, &mut seeded)
        .into_iter()
        .for_each(|change| tree.apply(change));
    let mut after = Tree {
        dirs: HashMap::from([(ROOT, BTreeMap::new())]),
    };
    let mut files = HashMap::new();
    let mut todo = vec![ROOT];
    while let Some(dir) = todo.pop() {
        let mut names = tree.dirs.get(&dir).cloned().unwrap_or_default();
        for node in names.values_mut() {
            match node {
                Node::Dir(child) => todo.push(*child),
                Node::File(file) => {
                    let survive = || {
                        Arc::new(MemFile::survived(surviving_image(
                            file.at_risk(),
                            rule,
                            &mut seeded,
                        )))
                    };
                    // Hard links stay names of the same file.
                    let survivor = Arc::clone(files.entry(Arc::as_ptr(file)).or_insert_with(survive));
                    *node = Node::File(survivor);
                }
            }
        }
        after.dirs.insert(dir, names);
    }
    Disk::survived(after, disk.next_dir())
}

fn surviving_changes(pending: &[Change], rule: CrashRule, seeded: &mut Seeded) -> Vec<Change> {
    match rule {
        CrashRule::LoseUnsynced => Vec::new(),
        CrashRule::KeepAll => pending.to_vec(),
        // As with a metadata journal: a prefix survives.
        CrashRule::Seeded(_) if seeded.one_in(2) => {
            let count = seeded.below(pending.len() as u64 + 1);
            pending
                .iter()
                .zip(0..count)
                .map(|(change, _)| change.clone())
                .collect()
        }
        // As POSIX allows: any subset survives.
        CrashRule::Seeded(_) => pending.iter().filter(|_| seeded.one_in(2)).cloned().collect(),
    }
}

fn surviving_image(file: AtRisk, rule: CrashRule, seeded: &mut Seeded) -> Image {
    match rule {
        CrashRule::LoseUnsynced => file.durable,
        CrashRule::KeepAll => file.live,
        CrashRule::Seeded(_) => seeded_image(file, seeded),
    }
}

fn seeded_image(file: AtRisk, seeded: &mut Seeded) -> Image {
    let mut image = file.durable;
    image.size_bytes = surviving_size(image.size_bytes, file.live.size_bytes, seeded);
    let zeros: Page = [0; PAGE_BYTES];
    // In reality, often all pages of a file or no page was written; a mixture is only one of several cases.
    let temper = seeded.below(4);
    for number in file.dirty {
        let old = image.pages.get(&number).map_or(zeros, |page| **page);
        let new = file.live.pages.get(&number).map_or(zeros, |page| **page);
        let page = match temper {
            0 => old,
            1 => new,
            _ => torn_page(old, new, seeded),
        };
        image.pages.insert(number, Arc::new(page));
    }
    cut(&mut image);
    image
}

fn surviving_size(durable: u64, live: u64, seeded: &mut Seeded) -> u64 {
    match seeded.below(3) {
        0 => durable,
        1 => live,
        _ => durable.min(live) + seeded.below(durable.abs_diff(live) + 1),
    }
}

fn torn_page(old: Page, new: Page, seeded: &mut Seeded) -> Page {
    let mut page = match seeded.below(3) {
        0 => return old,
        1 => return new,
        _ => old,
    };
    for (into, from) in page.chunks_mut(SECTOR_BYTES).zip(new.chunks(SECTOR_BYTES)) {
        if seeded.one_in(2) {
            into.copy_from_slice(from);
        }
    }
    page
}

/// Removes bytes beyond the end, so that a file that grows later grows with zeros.
fn cut(image: &mut Image) {
    let whole_pages = image.size_bytes.div_ceil(PAGE_BYTES as u64);
    image.pages.split_off(&whole_pages);
    let rest = image.size_bytes % PAGE_BYTES as u64;
    if let (Some(mut last), true) = (image.pages.last_entry(), rest > 0)
        && *last.key() == whole_pages - 1
    {
        let rest = usize::try_from(rest).unwrap_or(PAGE_BYTES);
        Arc::make_mut(last.get_mut())[rest..].fill(0);
    }
}
