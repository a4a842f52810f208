// SumOrders: the order of sums that requests with `batch_invariant` have, for those that were asked about.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kiln/generator/catalogue.h"

namespace kiln {

/// Thread-safe. Holds a few thousand, and begins anew when they are too many: what it forgets it finds again.
class SumOrders {
 public:
  /// Catalogue::order_of_sums(): of the orders in which every reference batch can be served, the one whose best
  /// variants are estimated fastest, as the geometric mean over these batches.
  std::optional<std::string> of(const Catalogue& catalogue, const Request& request, const Target& target);

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<std::string>> known_;  // by reference request and target
};

}  // namespace kiln
