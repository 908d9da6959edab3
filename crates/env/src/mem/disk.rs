//! The directory tree: the current one, the synced one, and the changes between them.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Component, Path};
use std::sync::Arc;

use super::file::MemFile;
use crate::door::DirEntry;

pub(super) type Outcome<T> = std::result::Result<T, ErrorKind>;
pub(super) type DirId = u64;
pub(super) const ROOT: DirId = 0;

#[derive(Clone)]
pub(super) enum Node {
    File(Arc<MemFile>),
    Dir(DirId),
}

impl Node {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => Arc::ptr_eq(a, b),
            (Self::Dir(a), Self::Dir(b)) => a == b,
            _ => false,
        }
    }
}

/// The names in each directory. A directory without a name is garbage.
#[derive(Clone)]
pub(super) struct Tree {
    pub dirs: HashMap<DirId, BTreeMap<String, Node>>,
}

/// A change of names that is not durable yet.
#[derive(Clone)]
pub(super) enum Change {
    Link {
        dir: DirId,
        name: String,
        node: Node,
    },
    Unlink {
        dir: DirId,
        name: String,
    },
    Rename {
        from: (DirId, String),
        to: (DirId, String),
        node: Node,
    },
}

pub(super) struct Disk {
    pub live: Tree,
    pub durable: Tree,
    /// In the order in which they were made.
    pub pending: Vec<Change>,
    next_dir: DirId,
}

impl Default for Disk {
    fn default() -> Self {
        let tree = Tree {
            dirs: HashMap::from([(ROOT, BTreeMap::new())]),
        };
        Self::survived(tree, ROOT + 1)
    }
}

impl Tree {
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Link { dir, name, node } => {
                self.dirs.entry(dir).or_default().insert(name, node);
            }
            Change::Unlink { dir, name } => {
                self.dirs.entry(dir).or_default().remove(&name);
            }
            Change::Rename {
                from: (from_dir, from),
                to: (to_dir, to),
                node,
            } => {
                let source = self.dirs.entry(from_dir).or_default();
                if source.get(&from).is_some_and(|found| found.is_same(&node)) {
                    source.remove(&from);
                }
                self.dirs.entry(to_dir).or_default().insert(to, node);
            }
        }
    }
}

impl Change {
    fn touches(&self, wanted: DirId) -> bool {
        match self {
            Self::Link { dir, .. } | Self::Unlink { dir, .. } => *dir == wanted,
            Self::Rename { from, to, .. } => from.0 == wanted || to.0 == wanted,
        }
    }
}

impl Disk {
    /// A disk whose tree is durable.
    pub(super) fn survived(tree: Tree, next_dir: DirId) -> Self {
        Self {
            live: tree.clone(),
            durable: tree,
            pending: Vec::new(),
            next_dir,
        }
    }

    pub(super) fn find(&self, path: &Path) -> Outcome<Node> {
        let mut node = Node::Dir(ROOT);
        for name in names(path)? {
            let Node::Dir(dir) = node else {
                return Err(ErrorKind::NotADirectory);
            };
            node = self
                .live
                .dirs
                .get(&dir)
                .and_then(|names| names.get(name))
                .cloned()
                .ok_or(ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    fn find_dir(&self, path: &Path) -> Outcome<DirId> {
        match self.find(path)? {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(ErrorKind::NotADirectory),
        }
    }

    /// The directory of the path's last name, and that name.
    fn place(&self, path: &Path) -> Outcome<(DirId, String)> {
        let name = names(path)?.last().ok_or(ErrorKind::InvalidInput)?.to_owned();
        let dir = self.find_dir(path.parent().unwrap_or(Path::new("")))?;
        Ok((dir, name.to_owned()))
    }

    fn change(&mut self, change: Change) {
        self.live.apply(change.clone());
        self.pending.push(change);
    }

    fn link(&mut self, path: &Path, node: Node) -> Outcome<()> {
        let (dir, name) = self.place(path)?;
        self.change(Change::Link { dir, name, node });
        Ok(())
    }

    pub(super) fn create_new(&mut self, path: &Path) -> Outcome<Arc<MemFile>> {
        if self.find(path).is_ok() {
            return Err(ErrorKind::AlreadyExists);
        }
        let file = Arc::new(MemFile::default());
        self.link(path, Node::File(Arc::clone(&file)))?;
        Ok(file)
    }

    pub(super) fn create(&mut self, path: &Path) -> Outcome<Arc<MemFile>> {
        match self.find(path) {
            Ok(Node::File(file)) => Ok(file),
            Ok(Node::Dir(_)) => Err(ErrorKind::IsADirectory),
            Err(ErrorKind::NotFound) => self.create_new(path),
            Err(kind) => Err(kind),
        }
    }

    pub(super) fn hard_link(&mut self, from: &Path, to: &Path) -> Outcome<()> {
        let node @ Node::File(_) = self.find(from)? else {
            return Err(ErrorKind::PermissionDenied);
        };
        if self.find(to).is_ok() {
            return Err(ErrorKind::AlreadyExists);
        }
        self.link(to, node)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Outcome<()> {
        let node = self.find(from)?;
        match (self.find(to), &node) {
            (Err(ErrorKind::NotFound), _) => {}
            (Err(kind), _) => return Err(kind),
            // Compat: POSIX; renaming a name to another name of the same file has no effect.
            (Ok(target), _) if target.is_same(&node) => return Ok(()),
            (Ok(Node::File(_)), Node::File(_)) => {}
            (Ok(Node::Dir(dir)), Node::Dir(_)) if self.live.dirs[&dir].is_empty() => {}
            (Ok(Node::Dir(_)), Node::Dir(_)) => return Err(ErrorKind::DirectoryNotEmpty),
            (Ok(Node::Dir(_)), Node::File(_)) => return Err(ErrorKind::IsADirectory),
            (Ok(Node::File(_)), Node::Dir(_)) => return Err(ErrorKind::NotADirectory),
        }
        let (from, to) = (self.place(from)?, self.place(to)?);
        self.change(Change::Rename { from, to, node });
        Ok(())
    }

    fn unlink(&mut self, path: &Path) -> Outcome<()> {
        let (dir, name) = self.place(path)?;
        self.change(Change::Unlink { dir, name });
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> Outcome<()> {
        match self.find(path)? {
            Node::File(_) => self.unlink(path),
            Node::Dir(_) => Err(ErrorKind::IsADirectory),
        }
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> Outcome<()> {
        let dir = self.find_dir(path)?;
        if !self.live.dirs[&dir].is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty);
        }
        self.unlink(path)
    }

    /// Removes name by name, children first, like `rm -r`: a crash may leave any part.
    pub(super) fn remove_dir_all(&mut self, path: &Path) -> Outcome<()> {
        let dir = self.find_dir(path)?;
        let children: Vec<(String, Node)> = self.live.dirs[&dir]
            .iter()
            .map(|(name, node)| (name.clone(), node.clone()))
            .collect();
        for (name, node) in children {
            match node {
                Node::Dir(_) => self.remove_dir_all(&path.join(name))?,
                Node::File(_) => self.unlink(&path.join(name))?,
            }
        }
        self.unlink(path)
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> Outcome<()> {
        let mut dir = ROOT;
        for name in names(path)? {
            dir = match self.live.dirs[&dir].get(name) {
                Some(Node::Dir(found)) => *found,
                Some(Node::File(_)) => return Err(ErrorKind::AlreadyExists),
                None => self.add_dir(dir, name),
            };
        }
        Ok(())
    }

    /// Adds a directory that is durable at once, as `create_dir_all` guarantees.
    fn add_dir(&mut self, parent: DirId, name: &str) -> DirId {
        let id = self.next_dir;
        self.next_dir += 1;
        self.live.dirs.insert(id, BTreeMap::new());
        self.durable.dirs.insert(id, BTreeMap::new());
        self.change(Change::Link {
            dir: parent,
            name: name.to_owned(),
            node: Node::Dir(id),
        });
        self.sync_dir_id(parent);
        id
    }

    pub(super) fn list(&self, path: &Path) -> Outcome<Vec<DirEntry>> {
        let dir = self.find_dir(path)?;
        let entry = |(name, node): (&String, &Node)| match node {
            Node::File(file) => DirEntry {
                name: name.clone(),
                is_dir: false,
                size_bytes: file.size_bytes(),
            },
            Node::Dir(_) => DirEntry {
                name: name.clone(),
                is_dir: true,
                size_bytes: 0,
            },
        };
        Ok(self.live.dirs[&dir].iter().map(entry).collect())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> Outcome<()> {
        let dir = self.find_dir(path)?;
        self.sync_dir_id(dir);
        Ok(())
    }

    fn sync_dir_id(&mut self, dir: DirId) {
        let (done, left) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change| change.touches(dir));
        self.pending = left;
        let done: Vec<Change> = done;
        done.into_iter().for_each(|change| self.durable.apply(change));
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let size = |node: &Node| match node {
            Node::File(file) => file.size_bytes(),
            Node::Dir(_) => 0,
        };
        self.live.dirs.values().flat_map(BTreeMap::values).map(size).sum()
    }

    pub(super) fn next_dir(&self) -> DirId {
        self.next_dir
    }
}

/// The names of a path; absolute and relative paths start at the same root.
fn names(path: &Path) -> Outcome<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str().ok_or(ErrorKind::InvalidInput)?),
            Component::ParentDir => {
                names.pop();
            }
            Component::Prefix(_) => return Err(ErrorKind::InvalidInput),
        }
    }
    Ok(names)
}
