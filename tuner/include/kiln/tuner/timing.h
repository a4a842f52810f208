// Race: decides from samples which candidates to time on, which to reject early, and when to stop. Never sees a device.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kiln/tuner/trial.h"

namespace kiln::tuner {

struct TimingOptions {
  int screening_samples = 3;   ///< Taken of a candidate before it is compared with the leader.
  int min_samples = 7;         ///< Samples of each survivor before its place can be settled.
  int doubt_samples = 24;      ///< Samples of each survivor whose interval has the limit of a tie in it.
  int max_samples = 60;        ///< Samples of each survivor, then it is settled as it is.
  int turn_samples = 2;        ///< Samples of a survivor at a time.
  int lap_samples = 12;        ///< Samples of all between two samples of the leader, or one turn more than that.
  double reject_margin = 0.1;  ///< Clearly slower: the fastest sample is this share above the leader's median.
  double precision = 0.01;     ///< A median is known well enough if its interval's half-width is this share of it.
  double steady = 0.03;        ///< A lap counts if the leader's times at its ends differ by this share at most, or by
                               ///< twice the distance between the quartiles of its times.
  int most_laps = 4;           ///< One that did not count is taken again until there were so many; then it counts.
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
/// A device's clock drifts and steps, and steps may be larger than what candidates differ by. So the leader is sampled
/// again and again: it sets the pace. Runs of others between two of its samples, a lap, are divided by the pace, the
/// geometric mean of the pace at the two ends. If it changed much from end to end, nobody knows when: the lap is taken
/// again. All times are thus at the pace at which the first candidate was screened. A sample of the leader itself is
/// divided by the pace before it.
///
/// Candidates enter when they passed their check. A newcomer is screened: a few samples, then rejected if clearly
/// slower. Survivors are sampled in turns until each is known well enough, and above all whether it ties with the
/// leader. The clearly slower drop out at the end of each lap.
class Race {
 public:
  /// Whom to sample next, and how often.
  struct Turn {
    size_t candidate = 0;
    int samples = 1;
    bool operator==(const Turn&) const = default;
  };

  /// `deterministic_time`: one sample each says all.
  Race(const TimingOptions& options, bool deterministic_time) : options_(options), deterministic_(deterministic_time) {}

  /// Adds a candidate; its number counts from 0.
  size_t enter();
  /// Nothing if there is nothing left to learn about those that entered.
  std::optional<Turn> next() const;
  /// Like next(), until the newcomers are screened: what to do while more candidates are on their way.
  std::optional<Turn> next_of_screening() const;
  void add(size_t candidate, double seconds);
  /// Takes a candidate out, e.g. because it crashed.
  void withdraw(size_t candidate);
  /// Ends the race early: the samples of the lap at work count, at the last pace known.
  void close();

  bool is_rejected(size_t candidate) const { return entrants_[candidate].state == State::rejected; }
  /// At the pace of the first candidate; without those of the lap at work.
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
  struct Sample {
    size_t candidate;
    double seconds;
  };

  int wanted_of_newcomers() const { return deterministic_ ? 1 : options_.screening_samples; }
  int taken_in_lap(size_t candidate) const;
  bool is_lap_full() const { return static_cast<int>(lap_.size()) >= options_.lap_samples; }
  bool is_settled(const Entrant& entrant) const;
  std::optional<size_t> pacer() const;
  std::optional<Turn> newcomer() const;
  std::optional<Turn> survivor() const;
  void end_lap(size_t pacer, double seconds);
  void count_lap(double pace);
  void reject_the_clearly_slower();

  TimingOptions options_;
  bool deterministic_;
  std::vector<Entrant> entrants_;
  std::vector<Sample> lap_;  // as measured, since the last sample of the leader
  double pace_ = 1;          // then
  int laps_lost_ = 0;        // one after the other
};

}  // namespace kiln::tuner
