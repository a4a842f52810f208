// Contexts, and the streams and events that live in them.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "driver/failure.h"
#include "driver/timeline.h"
#include "kiln/timing/card.h"
#include "launch_record.h"
#include "memory/address_space.h"
#include "model/device_table.h"

namespace kiln::emulator {

class Capture;
class Context;

/// A stream's place in a capture, or an event's. Only Captures reads and changes it.
struct CapturePosition {
  std::shared_ptr<Capture> capture;  ///< null: none
  std::vector<size_t> latest;        ///< the nodes that what comes next depends on
};

/// One emulated GPU.
struct Device {
  int ordinal = 0;
  DeviceModel model;                 ///< with the counts of a user's card
  std::string name;                  ///< what cuDeviceGetName reports: another clock is another device
  std::optional<timing::Card> card;  ///< that machine code is timed for; nothing if PTX tells the time
  Timeline timeline;
  CUcontext primary_handle = nullptr;  ///< the same for the whole process, as with the real driver
  std::mutex primary_mutex;            ///< guards primary_retains
  unsigned primary_retains = 0;
};

struct Stream {
  std::weak_ptr<Context> context;
  unsigned flags = CU_STREAM_DEFAULT;
  std::shared_ptr<Track> track = std::make_shared<Track>();
  CapturePosition captured;
};

struct Event {
  std::weak_ptr<Context> context;
  unsigned flags = CU_EVENT_DEFAULT;
  std::mutex mutex;                 ///< guards time and untimed
  std::optional<Picoseconds> time;  ///< nothing until recorded
  uint64_t untimed = 0;             ///< work on the device before it, whose time nobody knows
  CapturePosition captured;
};

/// One CUDA context. Thread-safe.
///
/// Work is executed when it is enqueued, by the calling thread, one piece at a time per context: a legal schedule of
/// any set of streams, since whatever a stream waits for was enqueued, so done, before.
class Context {
 public:
  /// `fresh`: what new allocations count as.
  Context(Device& device, CUcontext handle, AddressSpace& host_memory, AddressSpace::Fresh fresh);

  Device& device() const { return device_; }
  CUcontext handle() const { return handle_; }
  AddressSpace& memory() { return memory_; }
  /// Held while device work runs, and while what it may use is freed.
  std::mutex& execution() { return execution_; }

  /// Ends the call with the error of the fault that broke this context, if any.
  void require_usable() const { require(error_ == CUDA_SUCCESS, error_); }
  bool is_usable() const { return error_ == CUDA_SUCCESS; }
  /// Breaks the context: from now on every call in it fails with `error`. The first fault wins, and is printed on
  /// stderr; false if there was one already.
  bool set_fault(CUresult error, std::string report);
  /// Report of the fault that broke the context; empty if it is well.
  std::string fault() const;

  /// The legacy default stream, and the calling thread's own default stream.
  std::shared_ptr<Stream> legacy_stream() const { return legacy_; }
  std::shared_ptr<Stream> per_thread_stream(const std::shared_ptr<Context>& self);
  /// A new stream of this context; `self` is the owner's pointer to this.
  std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& self, unsigned flags) const;

  /// True if [address, address + bytes) is valid on the device: allocated here, or pinned host memory.
  bool is_valid(uint64_t address, uint64_t bytes) const;
  /// The valid addresses of a launch made now.
  std::shared_ptr<const RegionTable> regions() const;

  /// Whether work is timed and not done.
  bool is_time_only() const { return time_only_; }
  void set_time_only(bool on) { time_only_ = on; }

  void add_launch(LaunchRecord record);
  std::optional<LaunchRecord> last_launch() const;
  /// Why the latest launch without a time has none; "" if all that are kept have one.
  std::string not_timed() const;
  /// Launches since the last call, the oldest first; the latest 256 of them.
  std::vector<LaunchRecord> take_launches();

  /// Launches are recorded, at most so many instructions of each; 0: they are not.
  void trace_launches(uint64_t instructions) { traced_instructions_ = instructions; }
  uint64_t traced_instructions() const { return traced_instructions_; }

 private:
  Device& device_;
  const CUcontext handle_;
  AddressSpace& host_memory_;
  AddressSpace memory_;
  std::mutex execution_;
  std::atomic<CUresult> error_ = CUDA_SUCCESS;
  std::atomic<bool> time_only_ = false;
  std::atomic<uint64_t> traced_instructions_ = 0;
  const std::shared_ptr<Stream> legacy_;

  mutable std::mutex mutex_;  // guards everything below
  std::string fault_;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread_;
  std::deque<LaunchRecord> launches_;  // the last one, and those before it that nobody has taken
  size_t taken_launches_ = 0;          // the first of them
  mutable std::shared_ptr<const RegionTable> regions_;
  mutable uint64_t regions_version_ = 0, regions_host_version_ = 0;
};

}  // namespace kiln::emulator
