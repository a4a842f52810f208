#include "epochs.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <mutex>

#include "host_memory.h"

// A reader (R) stores `since`, fences, then loads what leads to an object (O). A writer (W) makes O unreachable, begins
// epoch e with retire(), and later, in safe_epoch(), fences and loads `since` of all readers.
//
// - R's fence is before W's. Then W's load gives R's `since` or a later value. If that is not 0 and below e, O stays.
//   If it is 0, R's Reading has ended: its uses of O are before the release store of 0, which W's load (acquire) gave.
//   If it is e or more, R loaded `current` (acquire) after W's increment (release): R's loads see O unreachable. What R
//   did with O in earlier Readings is before its store of `since` (release), which W's load (acquire) gave.
// - W's fence is before R's. Then R's loads after its fence see what W stored before its own: O is unreachable.
//
// R's fence is a compiler's alone. membarrier() makes every running thread of the process execute a full fence: to all
// of a thread's accesses before and after that point, W's call is as if R had fenced where R is. A thread that does not
// run fences when it is scheduled. Where the kernel refuses membarrier(), R fences itself, by a read-modify-write of
// one variable, as W does: they have an order, and the later one acquires what the earlier one released.
//
// A reader that registers while W goes through the list is not seen by it: its Reading begins behind the lock that W
// held, so behind W's stores.
namespace kiln::epochs {

thread_local constinit ReaderSlot* this_reader = nullptr;
std::atomic<uint64_t> current{1};
std::atomic<bool> readers_must_fence{false};

namespace {

std::mutex registering;
ReaderSlot* readers = nullptr;  // never freed, and taken again by later threads
std::atomic<uint64_t> fences{0};

long call_membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0U, 0);
}

// Gives the slot back where its thread ends. What the thread reads after that, in destructors of others, takes a new
// slot and keeps it.
struct Registration {
  ~Registration() {
    const std::lock_guard lock(registering);
    if (this_reader == nullptr || this_reader->depth > 0) return;
    this_reader->taken = false;
    this_reader = nullptr;
  }
};

// In the child of a fork() there is no other thread: what the parent's were reading is nobody's.
void after_fork_in_child() {
  for (ReaderSlot* slot = readers; slot != nullptr; slot = slot->next) {
    if (slot == this_reader) continue;
    slot->since.store(0, std::memory_order_relaxed);
    slot->depth = 0;
    slot->taken = false;
  }
  registering.unlock();
}

// Once, and before anybody can hold the lock: a fork() beside the first reader, who may hold it for milliseconds, would
// else leave it locked in the child.
[[maybe_unused]] const int fork_handlers =
    ::pthread_atfork([] { registering.lock(); }, [] { registering.unlock(); }, after_fork_in_child);

}  // namespace

void fence() {
  fences.fetch_add(1, std::memory_order_acq_rel);
}

ReaderSlot* register_reader() {
  static thread_local Registration registration;
  (void)registration;
  const std::lock_guard lock(registering);
  if (readers == nullptr && call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) {
    readers_must_fence.store(true, std::memory_order_relaxed);
  }
  for (ReaderSlot* slot = readers; slot != nullptr && this_reader == nullptr; slot = slot->next) {
    if (!slot->taken) this_reader = slot;
  }
  if (this_reader == nullptr) {
    this_reader = with_host_memory([] { return new ReaderSlot; });
    this_reader->next = readers;
    readers = this_reader;
  }
  this_reader->taken = true;
  return this_reader;
}

uint64_t retire() {
  return current.fetch_add(1, std::memory_order_acq_rel) + 1;
}

uint64_t safe_epoch() {
  const std::lock_guard lock(registering);
  fence();
  if (readers != nullptr && !readers_must_fence.load(std::memory_order_relaxed) &&
      call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    return 0;  // nothing is freed rather than too early: a sandbox may have been closed meanwhile
  }
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const ReaderSlot* slot = readers; slot != nullptr; slot = slot->next) {
    const uint64_t since = slot->since.load(std::memory_order_acquire);
    if (since != 0 && since < oldest) oldest = since;
  }
  return oldest;
}

}  // namespace kiln::epochs
