#include "driver/timeline.h"

#include <algorithm>
#include <cmath>

namespace kiln::emulator {
namespace {

constexpr size_t remembered_works = 256;

// The calling thread's modelled clock. Per thread, because threads that do not wait for each other must not delay each
// other's modelled work; thread_local, because the driver API has no handle that stands for a host thread.
Picoseconds& host_clock() {
  thread_local Picoseconds clock = 0;
  return clock;
}

Picoseconds ready_time(const Track& track) {
  const Picoseconds own = std::max(track.ready, track.blocking_end);
  return std::max(own, track.legacy != nullptr ? track.legacy->ready : 0);
}

}  // namespace

Picoseconds to_picoseconds(double seconds) {
  return static_cast<Picoseconds>(std::llround(seconds * 1e12));
}

Picoseconds Timeline::enqueue(Track& track, HardwareEngine engine, Picoseconds duration, Share share) {
  const std::lock_guard lock(mutex_);
  const Picoseconds earliest = std::max(ready_time(track), host_clock());
  const Picoseconds begin = engines_[static_cast<size_t>(engine)].take(earliest, duration, share);
  track.ready = begin + duration;
  if (track.legacy != nullptr) track.legacy->blocking_end = std::max(track.legacy->blocking_end, track.ready);
  horizon_ = std::max(horizon_, track.ready);
  return track.ready;
}

void Timeline::note_untimed() {
  const std::lock_guard lock(mutex_);
  ++untimed_;
}

uint64_t Timeline::untimed() const {
  const std::lock_guard lock(mutex_);
  return untimed_;
}

Picoseconds Timeline::record(const Track& track) const {
  const std::lock_guard lock(mutex_);
  return std::max(ready_time(track), host_clock());
}

void Timeline::wait(Track& track, Picoseconds time) {
  const std::lock_guard lock(mutex_);
  track.ready = std::max(track.ready, time);
  if (track.legacy != nullptr) track.legacy->blocking_end = std::max(track.legacy->blocking_end, track.ready);
}

void Timeline::synchronise(Picoseconds time) {
  host_clock() = std::max(host_clock(), time);
}

Picoseconds Timeline::horizon() const {
  const std::lock_guard lock(mutex_);
  return horizon_;
}

bool Timeline::Occupation::fits(Picoseconds begin, Picoseconds duration, Share share) const {
  const auto load_at = [&](Picoseconds time) {
    uint64_t load = share;
    for (auto work = works_.rbegin(); work != works_.rend() && work->end > time; ++work) {
      if (work->begin <= time) load += work->share;
    }
    return load;
  };
  if (load_at(begin) > whole_engine) return false;
  // The load rises only where some work begins.
  return std::all_of(works_.begin(), works_.end(), [&](const Work& work) {
    return work.begin <= begin || work.begin >= begin + duration || load_at(work.begin) <= whole_engine;
  });
}

Picoseconds Timeline::Occupation::take(Picoseconds earliest, Picoseconds duration, Share share) {
  Picoseconds begin = std::max(earliest, floor_);
  // Room appears only where some work ends.
  auto next_end = std::upper_bound(works_.begin(), works_.end(), begin,
                                   [](Picoseconds time, const Work& work) { return time < work.end; });
  while (next_end != works_.end() && !fits(begin, duration, share)) begin = (next_end++)->end;

  const Work taken{begin, begin + duration, share};
  const auto place = std::upper_bound(works_.begin(), works_.end(), taken.end,
                                      [](Picoseconds time, const Work& work) { return time < work.end; });
  works_.insert(place, taken);
  if (works_.size() > remembered_works) {
    floor_ = works_.front().end;
    works_.erase(works_.begin());
  }
  return begin;
}

}  // namespace kiln::emulator
