// Cards side by side: the variants of each layer and what they take on each card.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/choice.h"
#include "json.h"
#include "kiln/cache/pack.h"
#include "output.h"

namespace kiln::cli {

struct Variant {
  std::string algorithm, digest, config;

  /// "conv_direct TILE=8"
  std::string name() const;
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

/// One request on all cards.
struct FleetLayer {
  std::string request;
  std::vector<Variant> variants;  ///< In order. None that a card bars.
  LayerSeconds seconds;           ///< Parallel to `variants`; by card.
  size_t shared = 0;              ///< shared_variant().

  /// The fastest on a card; the number of variants where the card has no time.
  size_t best(size_t card) const;
  double best_seconds(size_t card) const;
};

struct Comparison {
  std::vector<cache::DeviceEntry> cards;
  std::vector<std::string> names;  ///< Names of the cards, no two alike: "NVIDIA H200".
  std::vector<FleetLayer> layers;  ///< By request.

  /// Sums of a card, over the layers that have a shared variant: the seconds of the best and of the shared variants.
  struct Sums {
    double best = 0, shared = 0;
    size_t layers = 0;
    double ratio() const { return shared / best; }  ///< Not a number without layers.
  };
  Sums sums(size_t card) const;
  /// Layers in which no variant has a time on every card that has timed the layer.
  size_t without_shared() const;
};

/// Records in `contents` of the cards that are `wanted`, of algorithms that are current. A card is wanted by its whole
/// name, or else by words in its name or line, in small or large letters: A10 means no A100. None wanted: all cards.
/// Predictions do not count. Throws Error(invalid_argument) if one of `wanted` fits no card, if there is no card, and
/// for real cards beside emulated ones.
Comparison compare_cards(const cache::Pack& contents, const std::vector<std::string>& wanted,
                         const cache::IsCurrent& is_current);

/// All that these databases, packs and folders of them hold: gather(). One that cannot be read is named on standard
/// error and left out; `complete` becomes false.
cache::Pack read_fleet(const std::vector<std::string>& files, bool& complete);

/// Pack with the fastest chosen variant for each card and layer, without samples; and the records that bar a variant on
/// these cards.
cache::Pack pack_of(const cache::Pack& contents, const Comparison& comparison, const FleetChoice& choice);

std::string print_comparison(const Comparison& comparison, const Output& output);
Json json_of(const Comparison& comparison);
/// The page of `kiln cache compare --report`.
std::string print_comparison_page(const Comparison& comparison, const std::string& command);

}  // namespace kiln::cli
