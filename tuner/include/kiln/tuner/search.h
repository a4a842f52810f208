// Which candidates of a request to try, in which order. A search never sees a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/tuner/trial.h"

namespace kiln::tuner {

enum class SearchKind {
  model,       ///< The best predictions, with some of every algorithm, and one of each structure.
  random,      ///< A seeded sample without repetition.
  exhaustive,  ///< Every legal candidate, best prediction first.
  local,       ///< Half of the model's candidates, then neighbours of the best measured so far.
};

/// "model", "random", "exhaustive", "local".
std::string_view to_string(SearchKind kind);
/// Throws Error(invalid_argument) listing the kinds.
SearchKind parse_search_kind(std::string_view text);

struct SearchOptions {
  SearchKind kind = SearchKind::model;
  /// How many to time per request, and as many points of user templates besides; `exhaustive` tries all. One that ends
  /// without a time is replaced by the next, until twice as many were tried.
  size_t candidates = 16;
  uint64_t seed = 1;
};

/// Used as `while (auto choice = search.next()) search.observe(trial(*choice));`.
///
/// next() may be called ahead of observe(). Equal options, candidates and trials give equal choices; none comes twice.
class Search {
 public:
  virtual ~Search() = default;

  /// The next choice to try; nothing if there is none, or none before more of the earlier ones are observed.
  virtual std::optional<Choice> next() = 0;
  /// Takes the outcome of a choice. `cost`: it was compiled and run for it; a trial that is known from before, or
  /// refused, costs nothing and uses up nothing of what may fail.
  virtual void observe(const Trial& trial, bool cost = true) = 0;
  /// Gives no more points of this algorithm.
  virtual void drop(const std::string& algorithm) = 0;
  /// How many choices it will give in all, at most, if no more of them fail.
  virtual size_t planned() const = 0;
};

/// `first` is always the first choice: what is used where nothing was measured, so that the gain over it is known.
/// `ranked` are the legal candidates, best prediction first; the search keeps a copy of what it needs.
///
/// Points of user templates are searched by themselves, in turns with the others: what their authors say of them takes
/// no place from a candidate with a prediction.
std::unique_ptr<Search> make_search(const SearchOptions& options, const std::vector<Candidate>& ranked,
                                    const Choice& first);

}  // namespace kiln::tuner
