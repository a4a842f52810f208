// Which variants to try for a request, in the order of precedence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/cache/winners.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// A variant with the reason for choosing it.
struct Selection {
  Choice choice;
  double seconds = 0;
  std::string source;  ///< "measured on this device", ..., "estimate"
};

/// Joins what is stored (cache) with what can be generated (catalogue), for one device.
struct Selector {
  const Catalogue& catalogue;
  const cache::Winners& winners;
  const Target& target;
  const DeviceFigures& figures;
  cache::Filter filter;

  /// The filter, as narrowed by what the request itself demands.
  cache::Filter filter_of(const Request& request) const;
  /// Stored variants that the library can still generate, in the order of precedence.
  std::vector<Selection> stored(const Request& request) const;
  /// The best `count` predictions within the filter, best first.
  std::vector<Selection> estimated(const Request& request, size_t count) const;
};

/// "measured on this device", with the pack's path where it comes from one.
std::string describe_source(const cache::Choice& choice);

}  // namespace kiln
