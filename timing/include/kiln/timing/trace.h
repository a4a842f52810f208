// Trace of one SM in a replay, cycle by cycle, for a viewer of traces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/timing/replay.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

/// Records a replay until so many instructions were issued, then nothing more: the replay goes on without it. The same
/// replay gives the same text.
class ReplayTrace {
 public:
  explicit ReplayTrace(uint64_t most_instructions) : most_(most_instructions) {}

  /// The Trace Event Format's events, with commas between, of the process `process` that is called `name`: a cycle is a
  /// microsecond. Tracks: blocks, schedulers, the load/store unit, L2, DRAM, warps (docs/time-model.md).
  std::string events_json(uint32_t process, std::string_view name) const;

  uint64_t instructions() const { return issues_.size(); }  ///< Recorded instructions.
  bool is_whole() const { return !is_cut_; }

  /// For replay(), which begins anew each time.
  void begin(const Sass& sass, uint32_t warps_of_block);
  void begin_block(uint32_t place, uint32_t block, uint64_t cycle);
  void end_warp(uint32_t warp, uint64_t cycle);
  /// The warp could have issued since `ready`, but for its pipe and its scheduler. False if there is no more room: then
  /// nothing more is to be recorded.
  bool issue(uint32_t warp, uint32_t instruction, uint64_t ready, uint64_t cycle);
  void wait(uint32_t warp, Stall cause, uint64_t begin, uint64_t end) { add_wait(warp, cause, false, begin, end); }
  /// The load/store unit works for the instruction issued last.
  void use_unit(uint64_t begin, uint64_t end);
  /// L2 or DRAM passes bytes, from and to in 1/65536 of a cycle.
  void pass(bool dram, uint64_t begin, uint64_t end, uint64_t bytes);

 private:
  struct Issue {
    uint64_t cycle;
    uint32_t warp, instruction;
  };
  struct Wait {
    uint64_t begin, end;
    uint32_t warp;
    Stall cause;
    bool ready;
  };
  struct Use {
    uint64_t begin, end;
    uint32_t issue;  // index
  };
  struct Pass {
    uint64_t begin, end, bytes;
  };
  struct Life {
    uint64_t begin, end;
    uint32_t place, block, warp;  // warp: of the block
  };

  void add_wait(uint32_t warp, Stall cause, bool ready, uint64_t begin, uint64_t end);
  void add_lives(std::string& text, uint32_t process) const;
  void add_issues(std::string& text, uint32_t process) const;

  uint64_t most_;
  bool is_cut_ = false;
  uint32_t warps_of_block_ = 1;
  uint64_t last_ = 0;                           // cycle that something was recorded of
  std::vector<std::string> names_, addresses_;  // of the instructions
  std::vector<Issue> issues_;
  std::vector<Wait> waits_;
  std::vector<Use> uses_;
  std::vector<Pass> passes_[2];  // L2, DRAM
  std::vector<Life> lives_;
  std::vector<size_t> life_of_;  // by warp: the latest
};

}  // namespace kiln::timing
