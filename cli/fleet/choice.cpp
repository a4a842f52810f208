#include "fleet/choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

namespace kiln::cli {
namespace {

// Sums of the same times in another order may differ by this much.
constexpr double rounding = 1e-9;

double best_of(const LayerSeconds& layer, size_t card) {
  double best = no_time;
  for (const std::vector<double>& variant : layer) best = std::min(best, variant[card]);
  return best;
}

// The state of a choice: what each card would take, and the function that is to be covered.
class Cover {
 public:
  Cover(const std::vector<LayerSeconds>& layers, size_t cards, double most_loss)
      : layers_(layers), best_(best_seconds(layers, cards)), saved_(cards), needed_(cards) {
    for (const LayerSeconds& layer : layers) {
      std::vector<double>& without = without_.emplace_back(cards);
      for (size_t card = 0; card < cards; ++card) {
        const double best = best_of(layer, card);
        if (best == no_time) continue;
        double slowest = best;
        for (const std::vector<double>& variant : layer) {
          if (variant[card] != no_time) slowest = std::max(slowest, variant[card]);
        }
        // A layer without a variant costs more than the whole loss that is allowed: none can be left out.
        without[card] = 2 * std::max(slowest, best + most_loss * best_[card]);
        needed_[card] += without[card];
      }
    }
    now_ = without_;
    for (size_t card = 0; card < cards; ++card) needed_[card] -= (1 + most_loss) * best_[card] * (1 + rounding);
  }

  /// Share that `pick` would add to what is covered.
  double gain(const Pick& pick) const {
    double sum = 0;
    for (size_t card = 0; card < saved_.size(); ++card) {
      if (best_[card] == 0) continue;
      const double saves = std::max(now_[pick.layer][card] - seconds(pick)[card], 0.0);
      sum += std::min(saves, std::max(needed_[card] - saved_[card], 0.0)) / needed_[card];
    }
    return sum;
  }

  /// Shares of cards that are left to be covered, of as many as there are cards with times.
  double left() const {
    double sum = 0;
    for (size_t card = 0; card < saved_.size(); ++card) {
      if (best_[card] > 0) sum += std::max(needed_[card] - saved_[card], 0.0) / needed_[card];
    }
    return sum;
  }
  bool is_covered() const {
    for (size_t card = 0; card < saved_.size(); ++card) {
      if (best_[card] > 0 && saved_[card] < needed_[card]) return false;
    }
    return true;
  }

  /// Share that all variants of a layer together could add, at most.
  double potential(size_t layer) const {
    double sum = 0;
    for (size_t card = 0; card < saved_.size(); ++card) {
      const double best = best_of(layers_[layer], card);
      if (best != no_time) sum += (now_[layer][card] - best) / needed_[card];
    }
    return sum;
  }

  /// Sets the variants of a layer.
  void set(size_t layer, const std::vector<Pick>& picks) {
    for (size_t card = 0; card < saved_.size(); ++card) {
      double now = without_[layer][card];
      for (const Pick& pick : picks) now = std::min(now, seconds(pick)[card]);
      saved_[card] += now_[layer][card] - now;
      now_[layer][card] = now;
    }
  }

  /// Cost of a layer, as shares of the cards' best sums.
  double cost(size_t layer) const {
    double sum = 0;
    for (size_t card = 0; card < saved_.size(); ++card) {
      if (best_[card] > 0) sum += now_[layer][card] / best_[card];
    }
    return sum;
  }

  std::vector<double> losses() const {
    std::vector<double> losses(saved_.size());
    for (size_t card = 0; card < saved_.size(); ++card) {
      double sum = 0;
      for (size_t layer = 0; layer < layers_.size(); ++layer) {
        const bool nothing = now_[layer][card] == without_[layer][card] && without_[layer][card] > 0;
        sum += nothing ? no_time : now_[layer][card];
      }
      losses[card] = best_[card] > 0 ? std::max(sum / best_[card] - 1, 0.0) : 0;
    }
    return losses;
  }

 private:
  const std::vector<double>& seconds(const Pick& pick) const { return layers_[pick.layer][pick.variant]; }

  const std::vector<LayerSeconds>& layers_;
  std::vector<double> best_;
  std::vector<std::vector<double>> without_, now_;  // [layer][card]; 0 where the card has no time of the layer
  std::vector<double> saved_, needed_;              // seconds, of each card
};

// Whatever is chosen, k variants cover no more than the k largest of these: of each layer the gains of its variants,
// largest first, as far as the layer can gain at all.
size_t fewest(const std::vector<LayerSeconds>& layers, const Cover& nothing) {
  std::vector<double> steps;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    std::vector<double> gains;
    for (size_t variant = 0; variant < layers[layer].size(); ++variant) gains.push_back(nothing.gain({layer, variant}));
    std::sort(gains.begin(), gains.end(), std::greater<>());
    double potential = nothing.potential(layer);
    for (const double gain : gains) {
      steps.push_back(std::min(gain, potential));
      potential -= steps.back();
      if (potential <= 0) break;
    }
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  double left = nothing.left() * (1 - rounding);
  size_t count = 0;
  while (left > 0 && count < steps.size()) left -= steps[count++];
  // And every layer that any card has needs one.
  const auto has_time = [&](const LayerSeconds& layer) {
    return std::any_of(layer.begin(), layer.end(), [](const auto& variant) {
      return std::any_of(variant.begin(), variant.end(), [](double seconds) { return seconds != no_time; });
    });
  };
  return std::max(count, static_cast<size_t>(std::count_if(layers.begin(), layers.end(), has_time)));
}

struct Offer {
  double gain = 0;  // when it was last looked at: never less than now
  Pick pick;
};
// Order of offers: the larger gain comes first, then the earlier pick.
struct Worse {
  bool operator()(const Offer& a, const Offer& b) const { return a.gain != b.gain ? a.gain < b.gain : b.pick < a.pick; }
};

// Leaves out what is not needed, the last that was taken first.
std::vector<Pick> thinned(std::vector<Pick> picks, std::vector<std::vector<Pick>>& by_layer, Cover& cover) {
  for (size_t i = picks.size(); i-- > 0;) {
    std::vector<Pick>& of_layer = by_layer[picks[i].layer];
    const std::vector<Pick> before = of_layer;
    std::erase(of_layer, picks[i]);
    cover.set(picks[i].layer, of_layer);
    if (cover.is_covered()) {
      picks.erase(picks.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      of_layer = before;
      cover.set(before.front().layer, before);
    }
  }
  return picks;
}

// Puts the variants that cost least in place of those of `picks`, one for one: once a card has what it needs, the
// greedy choice does not care for more.
void refine(std::vector<Pick>& picks, const std::vector<LayerSeconds>& layers, std::vector<std::vector<Pick>>& by_layer,
            Cover& cover) {
  for (Pick& pick : picks) {
    std::vector<Pick>& of_layer = by_layer[pick.layer];
    const auto place = std::find(of_layer.begin(), of_layer.end(), pick);
    double least = cover.cost(pick.layer);
    for (size_t variant = 0; variant < layers[pick.layer].size(); ++variant) {
      *place = {pick.layer, variant};
      cover.set(pick.layer, of_layer);
      if (!cover.is_covered() || cover.cost(pick.layer) >= least * (1 - rounding)) continue;
      least = cover.cost(pick.layer);
      pick = *place;
    }
    *place = pick;
    cover.set(pick.layer, of_layer);
  }
}

}  // namespace

std::vector<double> best_seconds(const std::vector<LayerSeconds>& layers, size_t cards) {
  std::vector<double> sums(cards);
  for (const LayerSeconds& layer : layers) {
    for (size_t card = 0; card < cards; ++card) {
      const double best = best_of(layer, card);
      if (best != no_time) sums[card] += best;
    }
  }
  return sums;
}

FleetChoice choose_variants(const std::vector<LayerSeconds>& layers, size_t cards, double most_loss,
                            size_t most_variants) {
  Cover cover(layers, cards, most_loss);
  FleetChoice choice;
  choice.least = fewest(layers, cover);
  std::priority_queue<Offer, std::vector<Offer>, Worse> offers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (size_t variant = 0; variant < layers[layer].size(); ++variant) {
      const Pick pick{layer, variant};
      offers.push({cover.gain(pick), pick});
    }
  }
  std::vector<std::vector<Pick>> by_layer(layers.size());
  const double all = cover.left();
  double left = all;
  while (!cover.is_covered() && choice.picks.size() < most_variants && !offers.empty()) {
    Offer offer = offers.top();
    offers.pop();
    offer.gain = cover.gain(offer.pick);  // gains only shrink, so one that stays on top is the largest
    if (offer.gain <= 0) continue;
    if (!offers.empty() && Worse()(offer, offers.top())) {
      offers.push(offer);
      continue;
    }
    left = cover.left();  // before the last step
    choice.picks.push_back(offer.pick);
    by_layer[offer.pick.layer].push_back(offer.pick);
    cover.set(offer.pick.layer, by_layer[offer.pick.layer]);
  }
  choice.within = cover.is_covered();
  if (choice.within) {
    const double bound = left > 0 ? 1 + std::log(all / left) : 1;  // Wolsey's
    const auto fewest_by_bound =
        static_cast<size_t>(std::ceil(static_cast<double>(choice.picks.size()) / bound - rounding));
    choice.least = std::max(choice.least, fewest_by_bound);
    choice.picks = thinned(std::move(choice.picks), by_layer, cover);
    refine(choice.picks, layers, by_layer, cover);
  }
  choice.loss = cover.losses();
  std::sort(choice.picks.begin(), choice.picks.end());
  return choice;
}

size_t shared_variant(const LayerSeconds& layer) {
  size_t found = layer.size();
  double least = no_time;
  for (size_t variant = 0; variant < layer.size(); ++variant) {
    double sum = 0;  // of logarithms
    for (size_t card = 0; card < layer[variant].size(); ++card) {
      const double best = best_of(layer, card);
      if (best != no_time) sum += std::log(layer[variant][card] / best);
    }
    if (sum < least) {
      least = sum;
      found = variant;
    }
  }
  return found;
}

}  // namespace kiln::cli
