// Which variants to try for a request, in the order of precedence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundles.h"
#include "kiln/cache/winners.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// A variant with the reason for choosing it.
struct Selection {
  Choice choice;
  double seconds = 0;
  std::string source;                      ///< "measured on this device", ..., "bundle app.kiln", "estimate"
  std::optional<BundledChoice> bundled{};  ///< Where the compiled program is, if that is a bundle.
};

/// Joins what is stored (cache), what was shipped compiled (bundles) and what can be generated (catalogue), for one
/// device.
struct Selector {
  const Catalogue& catalogue;
  const cache::Winners& winners;
  const Bundles& bundles;
  const Target& target;
  const DeviceFigures& figures;
  cache::Filter filter;

  /// The filter, as narrowed by what the request itself demands.
  cache::Filter filter_of(const Request& request) const;
  /// Stored variants that the library can still generate, in the order of precedence. What a pack says of workspace and
  /// determinism is text from outside: the filter is applied to the program itself too.
  std::vector<Selection> stored(const Request& request) const;
  /// Variants in bundles, in the order of Bundles::find(). They are whole programs, whatever the library generates now.
  std::vector<Selection> bundled(const Request& request) const;
  /// The best `count` predictions within the filter, best first.
  std::vector<Selection> estimated(const Request& request, size_t count) const;

 private:
  bool admits(const Request& request, int64_t workspace_bytes, bool deterministic) const;
};

/// A choice out of a cache or bundle: text from outside, which may be malformed. Then nothing.
std::optional<Choice> readable(std::string_view algorithm, std::string_view config);

/// "measured on this device", with the pack's path where it comes from one.
std::string describe_source(const cache::Choice& choice);

}  // namespace kiln
