//! Large pages of memory (transparent huge pages of Linux).

/// From now on, memory of this process comes in small pages. Call this only if the process exists to run or measure a node.
///
/// The allocator asks for large pages where the system has them. Then each thread and each size of block takes at least two
/// megabytes, and the request that first touches a large page waits until all of it is zeroed: 0.3 ms, or 6 ms in a virtual machine
/// whose host has yet to find the memory.
///
/// This is only a hint: on a system without large pages, or with a kernel that refuses it, nothing changes.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
