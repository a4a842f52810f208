// Where modelled times come from, and how far they can be trusted.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "json.h"
#include "kiln/cache/pack.h"

namespace kiln::cli {

/// For the name of an emulated device: "modelled by machine-code clock 6: rank correlation 0.92 to 0.99 with measured
/// times of 3 tables, off by 6% to 20%", "modelled from PTX alone, uncalibrated".
std::string modelled_text(std::string_view device_name);

/// The same in JSON: `clock`, `accuracy`, `judged` (`table`, `rows`, `spearman`, `mean`, `spread`, `date`). Null for a
/// real device.
Json modelled_json(std::string_view device_name);

/// Which clock told each launch that a command timed. A device with a clock for machine code falls back on PTX where a
/// module brings no machine code, as those of bundles for it, and where data decide how long a kernel takes.
class LaunchClocks {
 public:
  explicit LaunchClocks(std::string_view device_name) : device_name_(device_name) {}
  /// As launches_of() gives them.
  void add(const Json& launches);
  /// modelled_text(), as far as that is the clock which told them; else by PTX alone, how many and why.
  std::string text() const;
  /// modelled_json() in the same way, with `by_ptx_alone` (`launches`, `of`, `reason`) where there are some.
  Json json() const;

 private:
  std::string device_name_;
  size_t launches_ = 0, by_ptx_ = 0;
  std::string reason_;  // of the first by PTX
};

/// Writes into `pack` how well the clocks of its emulated devices do, of those that this Kiln has.
void mark_predictions(cache::Pack& pack);

/// Collects what is known of the clocks that predicted choices for one device.
class PredictionNotes {
 public:
  explicit PredictionNotes(std::string_view device_name) : device_name_(device_name) {}
  /// `source`: of a choice, "predicted by machine-code clock 1, from pack a.pack". Other sources add nothing.
  void add(std::string_view source);
  /// "predicted by machine-code clock 6: rank correlation ...", each once.
  const std::set<std::string>& notes() const { return notes_; }
  /// The same, a line each.
  std::string print() const;

 private:
  std::string device_name_;
  std::set<std::string> notes_;
};

}  // namespace kiln::cli
