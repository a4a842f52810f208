// Mbarriers of a block: phases that end when as many threads have arrived, and as many bytes, as are expected.
#pragma once

#include <cstdint>
#include <map>

namespace kiln::emulator {

struct Mbarrier {
  uint32_t expected = 0;  ///< arrivals of each phase
  uint32_t pending = 0;   ///< arrivals that this phase still lacks
  int64_t bytes = 0;      ///< that copies are to bring in this phase and have not; less than 0: more than announced
  uint64_t phase = 0;     ///< phases that have ended

  bool is_complete() const { return pending == 0 && bytes == 0; }
};

/// By their offsets in the block's shared memory. What their 8 bytes hold is opaque, so nothing is kept there.
class Mbarriers {
 public:
  static constexpr uint32_t most_arrivals = (1u << 20) - 1;

  void clear();
  void init(uint64_t offset, uint32_t arrivals);
  void invalidate(uint64_t offset);
  /// Null if there is none.
  Mbarrier* find(uint64_t offset);

  /// Something has been done that threads may be waiting for.
  void note_progress() { rounds_without_progress_ = 0; }
  uint32_t next_round() { return ++rounds_without_progress_; }

 private:
  std::map<uint64_t, Mbarrier> at_;
  uint32_t rounds_without_progress_ = 0;
};

}  // namespace kiln::emulator
