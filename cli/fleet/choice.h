// Choosing for a fleet: the fewest variants of all layers with which no card loses more than is allowed.
//
// A card's time is the sum over all layers of its fastest chosen variant. The saving of a set of variants on a card,
// counted up to what the card needs, is monotone and submodular in the set, and so is the sum over the cards. To reach
// all of the sum by the fewest variants is submodular set covering, which is NP-hard (it holds set cover: cards are
// elements). The greedy choice takes at most 1 + ln(F(all) / (F(all) - F(all but the last step))) times the fewest: L.
// A. Wolsey, "An analysis of the greedy algorithm for the submodular set covering problem", Combinatorica 2 (1982),
// Theorem 1.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace kiln::cli {

inline constexpr double no_time = std::numeric_limits<double>::infinity();

/// Seconds of the variants of one layer: [variant][card]; no_time where it cannot be used or was not timed.
using LayerSeconds = std::vector<std::vector<double>>;

/// Sums for each card, over the layers, of the seconds of the fastest variant; layers that have no time on a card are
/// not in its sum.
std::vector<double> best_seconds(const std::vector<LayerSeconds>& layers, size_t cards);

struct Pick {
  size_t layer = 0, variant = 0;

  friend auto operator<=>(const Pick&, const Pick&) = default;
};

struct FleetChoice {
  std::vector<Pick> picks;   ///< By layer, then variant.
  std::vector<double> loss;  ///< Loss of each card: its time over its best, less 1; no_time if a layer of it has
                             ///< nothing.
  bool within = false;       ///< Whether no card loses more than was allowed.
  size_t least = 0;          ///< No choice with fewer variants is within it: also by Wolsey's bound.
};

/// Takes what saves most until every card is within `most_loss` (0.05: 5%) of its best, or `most_variants` are taken;
/// then leaves out what is not needed, and takes what costs least for as many variants as that. Among equal savings the
/// first layer and variant is taken.
FleetChoice choose_variants(const std::vector<LayerSeconds>& layers, size_t cards, double most_loss,
                            size_t most_variants = std::numeric_limits<size_t>::max());

/// The variant of a layer that all cards with a time of the layer share at the least loss: the least geometric mean of
/// its times over the cards' best. Nothing (the number of variants) if none has a time on all of them.
size_t shared_variant(const LayerSeconds& layer);

}  // namespace kiln::cli
