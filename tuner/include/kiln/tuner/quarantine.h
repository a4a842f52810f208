// Quarantine: sources that hung or crashed twice, so that no session tries them again with the same tools.
#pragma once

#include <compare>
#include <set>
#include <string>
#include <utility>

#include "kiln/tuner/trial.h"

namespace kiln::tuner {

/// Subject of a quarantine: another driver or NVRTC deserves another try.
struct Suspect {
  std::string source_digest, device, driver_version, nvrtc_version;
  auto operator<=>(const Suspect&) const = default;
};

class Quarantine {
 public:
  /// Takes in a trial of this session: it counts if it crashed or timed out. Running out of memory, a wrong result and
  /// a failed compile do not: they are answers.
  void learn(const Trial& trial);
  /// Takes in a source that crashed or timed out in an earlier session.
  void add(Suspect suspect) { suspects_.insert(std::move(suspect)); }
  bool contains(const Suspect& suspect) const { return suspects_.contains(suspect); }
  size_t size() const { return suspects_.size(); }

 private:
  std::set<Suspect> suspects_;
};

}  // namespace kiln::tuner
