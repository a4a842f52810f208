// Race: decides from samples which candidates to time on, which to reject early, and when to stop. Never sees a device.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kiln/tuner/trial.h"

namespace kiln::tuner {

struct TimingOptions {
  int screening_samples = 3;   ///< Taken of a candidate before it is compared with the leader.
  int min_samples = 7;         ///< Of each survivor before its place can be settled.
  int max_samples = 60;        ///< Of each survivor, then it is settled as it is.
  double reject_margin = 0.1;  ///< Clearly slower: the fastest sample is this share above the leader's median.
  double precision = 0.01;     ///< A median is known well enough if its interval's half-width is this share of it.
};

/// The median of a sample and how well it is known.
struct Summary {
  double median = 0;  ///< Seconds
  double low = 0;     ///< Lower end of the median's confidence interval, seconds.
  double high = 0;    ///< Upper end.

  double half_width() const { return (high - low) / 2; }
};

/// Order statistics: the interval between the samples of rank n/2 -+ 0.98 sqrt(n) covers the median with 95%
/// confidence, whatever the distribution (the binomial's normal approximation); the whole range for small samples.
/// All zeros for no samples.
Summary summarise(std::vector<double> samples);

/// Interleaved timing of the candidates of one request.
///
/// Candidates enter when they passed their check. A newcomer is screened: a few samples, then rejected if clearly
/// slower. Survivors are sampled in rounds, one sample each, so that drift of the device's clock hits all alike; the
/// clearly slower drop out. The race is over when the leader is settled: everybody else is rejected, or known well
/// enough for the tie rule to decide.
class Race {
 public:
  /// `deterministic_time`: one sample each says all.
  Race(const TimingOptions& options, bool deterministic_time) : options_(options), deterministic_(deterministic_time) {}

  /// Adds a candidate; its number counts from 0.
  size_t enter();
  /// The candidate to sample next; nothing if there is nothing left to learn about those that entered.
  std::optional<size_t> next() const;
  /// Like next(), among newcomers that are not screened yet only: what to do while more candidates are on their way.
  std::optional<size_t> next_newcomer() const;
  void add(size_t candidate, double seconds);
  /// Takes a candidate out, e.g. because it crashed.
  void withdraw(size_t candidate);

  bool is_rejected(size_t candidate) const { return entrants_[candidate].state == State::rejected; }
  const std::vector<double>& samples(size_t candidate) const { return entrants_[candidate].samples; }
  Summary summary(size_t candidate) const { return summarise(entrants_[candidate].samples); }
  /// The survivor with the least median; nothing if there is none with a sample.
  std::optional<size_t> leader() const;

 private:
  enum class State { running, rejected, withdrawn };
  struct Entrant {
    std::vector<double> samples;
    State state = State::running;
  };

  bool is_newcomer(const Entrant& entrant) const;
  bool is_settled(const Entrant& entrant) const;
  void reject_the_clearly_slower();

  TimingOptions options_;
  bool deterministic_;
  std::vector<Entrant> entrants_;
};

}  // namespace kiln::tuner
