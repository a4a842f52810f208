// Epochs: when memory that readers without a lock may still use can be freed.
#pragma once

#include <atomic>
#include <cstdint>

/// Epoch-based reclamation (K. Fraser, "Practical lock-freedom", 2004, section 5.2.3), with the reader's fence moved to
/// the writer: membarrier(2). One state for the process, because a thread that reads may use several Contexts.
///
/// A writer first makes an object unreachable, then calls retire(), and frees the object once safe_epoch() has come to
/// the epoch that it was given. epochs.cpp says why nobody has it then.
namespace kiln::epochs {

struct ReaderSlot {
  alignas(64) std::atomic<uint64_t> since{0};  ///< Epoch in which the thread began to read; 0 while it does not.
  unsigned depth = 0;                          ///< Readings of the thread within each other.
  ReaderSlot* next = nullptr;
  bool taken = true;
};

/// Initial-exec: an access costs no call, also within a shared library. It takes a pointer of the room that the C
/// library keeps for libraries that are opened later.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit ReaderSlot* this_reader;
extern std::atomic<uint64_t> current;
extern std::atomic<bool> readers_must_fence;

ReaderSlot* register_reader();
void fence();

/// While one exists, what this thread finds is not freed. May be nested. No lock, and but for the first in a thread no
/// allocation.
class Reading {
 public:
  Reading() : slot_(this_reader) {
    if (slot_ == nullptr) slot_ = register_reader();
    if (slot_->depth++ > 0) return;
    slot_->since.store(current.load(std::memory_order_acquire), std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // safe_epoch() makes it one for all threads
    if (readers_must_fence.load(std::memory_order_relaxed)) fence();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    if (--slot_->depth == 0) slot_->since.store(0, std::memory_order_release);
  }

 private:
  ReaderSlot* slot_;
};

/// Begins a new epoch, and returns it. What cannot be found any more by then may be freed when safe_epoch() is as
/// large.
uint64_t retire();

/// The epoch of the oldest Reading: none began before it. Costs a system call that interrupts the process's other
/// threads for a moment.
uint64_t safe_epoch();

}  // namespace kiln::epochs
