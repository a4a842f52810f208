// How often tuning on a noisy device finds what is fastest, and the same again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/tuner/timing.h"
#include "replay.h"

namespace kiln::bench {

struct StudyOptions {
  size_t tunings = 1000;
  size_t candidates = 64;  ///< Candidates of each tuning, drawn from the rows.
  uint64_t seed = 1;
  Noise noise{};
};

/// One tuning.
struct Picked {
  size_t candidate = 0;
  size_t samples = 0;  ///< Timed runs.
  size_t runs = 0;     ///< All of them.
  double seconds = 0;  ///< Device time of all runs.
};

/// Takes samples of a device until it knows the fastest. `seed`: of what else is random.
using Method = std::function<Picked(ReplayDevice& device, uint64_t seed)>;

/// The tuner: a whole session, of `candidates` candidates.
Method tuner_method(size_t candidates, const tuner::TimingOptions& timing = {});
enum class Statistic { mean, least, median };
/// `samples` runs of each candidate, one after the other, and no other runs; the least statistic wins.
Method simple_method(int samples, Statistic statistic);

/// Verdict on all tunings, each made twice: the same candidates, other noise.
struct Verdict {
  double near = 0;     ///< Share of picks within 1% of the best, by the medians of their rows.
  double same = 0;     ///< Share of retunes with the same pick, but for those below.
  double tied = 0;     ///< Share of retunes with another pick that ties with the first, by the medians of their rows.
  double worst = 0;    ///< Largest of a pick's median over the best one's.
  double samples = 0;  ///< For each candidate.
  double runs = 0;     ///< For each candidate.
  double seconds = 0;  ///< Device time of each tuning.
};

/// Equal options and rows give equal verdicts. Throws Error(invalid_argument) if there are fewer rows than candidates.
Verdict judge(const std::vector<SampledRow>& rows, const StudyOptions& options, const Method& method);

}  // namespace kiln::bench
