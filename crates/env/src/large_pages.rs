//! Large pages of memory (transparent huge pages of Linux).

/// Memory of this process comes in small pages from now on. The allocator asks for large pages where the system has them; each thread and
/// each size of block then takes at least two megabytes.
///
/// A hint: a system without large pages, or a kernel that refuses it, changes nothing.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
