// Neighbours: what was learnt from other sizes of a layer, for a size that has no record.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/cache/winners.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/layer_class.h"

namespace kiln {

/// Corrects the estimates of a request by the times that sizes near it have (docs/tuning-method.md, "Sizes that nobody
/// tuned"). Thread-safe.
class Neighbours {
 public:
  static constexpr size_t most_used = 5;  ///< Sizes, for one request.
  /// Requests of databases and packs, in the order of precedence, besides what is tuned meanwhile: packs are text from
  /// outside.
  static constexpr size_t most_indexed = 65536;
  static constexpr size_t most_learnt = 1024;  ///< Requests whose times are kept in memory; of more the first go.
  static constexpr size_t most_ranked = 64;    ///< Candidates that may come first besides those with a time nearby.

  /// All must outlive it. Nothing is read before the first question.
  Neighbours(const cache::Winners& winners, const Catalogue& catalogue, const DeviceFigures& figures)
      : winners_(winners), catalogue_(catalogue), figures_(figures) {}

  /// `candidates` of the request of `variants` in the order of their corrected estimates, the best of them first, with
  /// `basis` saying from what: "from 3 neighbours, nearest x=8x64x56x56". As they are where no size is near.
  Candidates ranked(Variants& variants, Candidates candidates);
  /// Says that a request was tuned.
  void learn(std::string_view key);

 private:
  /// Word of a size on variants: measured time by estimate, in parts of what it is for all of them.
  struct Lesson {
    Request request;
    std::map<std::string, double> variants;    ///< By variant_name().
    std::map<std::string, double> algorithms;  ///< Their geometric mean for each algorithm.
    double level = 1;                          ///< Time by estimate, the geometric mean of all.

    /// Part of a variant, by its name and its algorithm's.
    double factor(const std::string& variant, const std::string& algorithm) const;
  };
  struct Neighbour {
    std::string key;
    double distance = 0;
    std::shared_ptr<const Lesson> lesson;
  };

  std::vector<Neighbour> neighbours_of(const KeyedRequest& request, const Target& target);
  std::vector<Neighbour> nearest(const std::string& key);
  void index();
  void insert(std::string_view key);
  std::shared_ptr<const Lesson> lesson_of(const std::string& key, const KeyedRequest& like, const Target& target);
  std::shared_ptr<const Lesson> read(const std::string& key, const KeyedRequest& like, const Target& target) const;

  const cache::Winners& winners_;
  const Catalogue& catalogue_;
  const DeviceFigures& figures_;

  std::mutex mutex_;  // guards what follows
  bool indexed_ = false;
  size_t count_ = 0;  // of requests in `classes_`
  /// By LayerClass::text: requests, and their LayerClass::sizes.
  std::map<std::string, std::map<std::string, std::vector<int64_t>>, std::less<>> classes_;
  std::map<std::string, std::shared_ptr<const Lesson>, std::less<>> lessons_;  // null: the request teaches nothing
  std::deque<std::string> order_;                                              // keys of `lessons_`, the oldest first
  uint64_t learnt_since_ = 0;                                                  // how often learn() was called
};

}  // namespace kiln
