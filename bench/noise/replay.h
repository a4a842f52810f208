// A device of the noise that others have measured: it replays their samples, so that the tuner can be tested on them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kiln/tuner/laboratory.h"
#include "sampled_rows.h"

namespace kiln::bench {

/// Numbers in a fixed order for a seed, whatever the standard library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}
  size_t below(size_t count) { return static_cast<size_t>(bits_() % count); }
  /// At least 0, less than 1.
  double share() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 bits_;
};

/// Noise on top of the samples, for all candidates alike.
struct Noise {
  double steps_per_run = 0;  ///< How likely the clock steps before a run.
  double largest_step = 1;   ///< It steps to a factor of the time from 1 to this, all equally likely in its logarithm.
  double blips_per_run = 0;  ///< How likely a run is disturbed, as by another process.
  double largest_blip = 1;   ///< It then takes from 1 to this times as long, likewise.
  double jitter = 0;         ///< Every run takes longer by this share on average, exponentially distributed.
  double drift = 0;          ///< Times rise and fall by up to this share, over some thousands of runs.
};

/// Every run takes one of the samples of its row.
///
/// The first run behind one of another candidate takes the row's first sample. The others take the rest in blocks of 8,
/// in the order measured, each from a random place and round the end (the circular block bootstrap): so there are as
/// many as wanted, distributed as in the table, and neighbours stay neighbours, as where the clock stepped within a
/// row.
class ReplayDevice {
 public:
  ReplayDevice(std::vector<const SampledRow*> rows, const Noise& noise, uint64_t seed);

  /// Seconds of one run.
  double run(size_t candidate);

  size_t candidates() const { return rows_.size(); }
  size_t runs() const { return runs_; }
  double seconds() const { return seconds_; }  ///< Seconds of all runs.

 private:
  struct Place {
    size_t next = 0, left = 0;  // sample, and samples of its block
  };

  double pace();

  std::vector<const SampledRow*> rows_;
  std::vector<Place> places_;
  Noise noise_;
  Dice dice_;
  double step_ = 1, phase_, period_;
  size_t last_, runs_ = 0;
  double seconds_ = 0;
};

/// The tuner's view of such a device: everything compiles and is right, and candidate i is the program `i`.
class ReplayLaboratory : public tuner::Laboratory {
 public:
  /// `device` must outlive it. `seed`: of the order in which compiles end.
  ReplayLaboratory(ReplayDevice& device, uint64_t seed);

  size_t samples() const { return samples_; }  ///< Taken so far.

  const tuner::Apparatus& apparatus() const override { return apparatus_; }
  size_t compile_lanes() const override { return 4; }
  std::optional<Request> stand_in(const Request&) const override { return std::nullopt; }
  void submit(tuner::SpecimenId id, const tuner::Programs& programs) override;
  std::optional<tuner::CompileReport> collect(double wait_seconds) override;
  bool needs_trusted(const Request&) const override { return false; }
  tuner::CheckReport begin(const tuner::Subject&, std::optional<tuner::SpecimenId>) override { return {}; }
  tuner::CheckReport check(tuner::SpecimenId) override { return {}; }
  tuner::SampleReport sample(tuner::SpecimenId id, int count) override;
  void discard(tuner::SpecimenId id) override { candidates_.erase(id); }

 private:
  ReplayDevice& device_;
  Dice dice_;
  tuner::Apparatus apparatus_;
  std::deque<tuner::SpecimenId> submitted_;
  std::map<tuner::SpecimenId, size_t> candidates_;
  size_t samples_ = 0;
};

}  // namespace kiln::bench
