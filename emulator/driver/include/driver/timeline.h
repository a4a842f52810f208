// Modelled time: when each piece of work of each stream would start and end on the emulated device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/left_in_l2.h"

namespace kiln::emulator {

/// Modelled time and durations, in picoseconds. Whole numbers, so that the same launch takes the same time to the bit
/// wherever on the timeline it stands.
using Picoseconds = uint64_t;

Picoseconds to_picoseconds(double seconds);

/// Hardware engines of a device. A piece of work occupies a part of one.
enum class HardwareEngine { compute, copy_to_device, copy_to_host };

/// The part of an engine that work occupies, in millionths.
using Share = uint32_t;
inline constexpr Share whole_engine = 1'000'000;

/// One stream's place on the timeline. Only its Timeline changes it, but for `in_l2`.
struct Track {
  /// The track of the context's legacy default stream, when this stream is ordered against it; null for that stream
  /// itself and for non-blocking streams.
  std::shared_ptr<Track> legacy;
  Picoseconds ready = 0;         ///< end of the last work enqueued
  Picoseconds blocking_end = 0;  ///< of a legacy default stream: end of all work of the streams ordered against it
  LeftInL2 in_l2;                ///< by the work enqueued last; under the context's execution lock
};

/// The modelled schedule of one device. Thread-safe.
///
/// Work starts when its stream is ready, when the enqueuing thread's modelled clock has come (a thread's clock stands
/// still except where it synchronises), and when the engine has room: each kernel occupies the share of the device that
/// its blocks can fill, and kernels overlap while their shares add up to at most one device. The work itself is already
/// done when it comes here: this is only bookkeeping.
class Timeline {
 public:
  /// Places work of `duration` on a stream and returns its end.
  Picoseconds enqueue(Track& track, HardwareEngine engine, Picoseconds duration, Share share = whole_engine);
  /// Work was done whose time nobody knows: it takes none.
  void note_untimed();
  /// The time at which an event recorded now is reached.
  Picoseconds record(const Track& track) const;
  /// Work so far whose time nobody knows.
  uint64_t untimed() const;
  /// Later work of the stream, and of the default stream if that is ordered against it, starts no earlier than `time`.
  void wait(Track& track, Picoseconds time);
  /// The calling thread waits for `time`: what it enqueues later, on any device, starts no earlier.
  static void synchronise(Picoseconds time);
  /// The end of everything enqueued so far.
  Picoseconds horizon() const;

 private:
  struct Work {
    Picoseconds begin, end;
    Share share;
  };
  class Occupation {
   public:
    /// Takes the first gap of `duration` from `earliest` on that has room for `share`; returns where it begins.
    Picoseconds take(Picoseconds earliest, Picoseconds duration, Share share);

   private:
    bool fits(Picoseconds begin, Picoseconds duration, Share share) const;

    std::vector<Work> works_;  // by end; the oldest are forgotten
    Picoseconds floor_ = 0;    // end of what was forgotten: nothing starts before it
  };

  mutable std::mutex mutex_;
  std::array<Occupation, 3> engines_;  // by HardwareEngine
  Picoseconds horizon_ = 0;
  uint64_t untimed_ = 0;
};

}  // namespace kiln::emulator
