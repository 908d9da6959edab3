//! Large pages of memory (transparent huge pages of Linux).

/// From now on, memory of this process comes in small pages. The allocator asks for large pages where the system has them; then each
/// thread and each size of block takes at least two megabytes.
///
/// This is only a hint: on a system without large pages, or with a kernel that refuses it, nothing changes.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
