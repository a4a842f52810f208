// prologue_slack() of local normalisations and of their gradients. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <optional>

#include "kiln/base/parallel.h"
#include "kiln/generator/operations/local_norm.h"
#include "kiln/reference/tensor_memory.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

using Values = std::vector<double>;

std::vector<float> floats_of(const Question& asked, const std::string& name) {
  return read_floats(asked.plain.at(name), asked.plain.at(name), asked.operands.at(name));
}

// A part of a tensor that no window leaves: `along` elements for each of `across` neighbours, those the faster ones.
struct Block {
  size_t first, along, step, across;

  size_t size() const { return along * across; }
  // Calls visit(number in the block, number in the tensor) for each element.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t i = 0; i < along; ++i) {
      for (size_t j = 0; j < across; ++j) visit(i * across + j, first + i * step + j);
    }
  }
};

// The windows, and the numbers of the call.
struct Windows {
  const std::vector<int64_t>& extents;
  int64_t first_axis, last_axis;
  const std::vector<int64_t>& axes;
  int64_t behind, ahead;
  double scale, exponent, k;

  template <class View>
  Windows(const View& norm, const Question& asked)
      : extents(norm.x.extents),
        first_axis(std::ranges::min(norm.axes)),
        last_axis(std::ranges::max(norm.axes)),
        axes(norm.axes),
        behind((norm.size - 1) / 2),
        ahead(norm.size / 2),
        scale(asked.number("lrn_alpha") /
              std::pow(static_cast<double>(norm.size), static_cast<double>(norm.axes.size()))),
        exponent(asked.number("lrn_beta")),
        k(asked.number("lrn_k")) {}

  // The tensor in blocks that fit into a cache, unless windows reach further; from several threads.
  template <class Visit>
  void for_each_block(const Visit& visit) const {
    const size_t outer = elements(0, first_axis), along = elements(first_axis, last_axis + 1),
                 inner = elements(last_axis + 1, static_cast<int64_t>(extents.size()));
    if (outer * along * inner == 0) return;
    const size_t width = std::clamp(4096 / along, std::min<size_t>(16, inner), inner);
    const size_t blocks = (inner + width - 1) / width;
    for_each_part(outer * blocks, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t from = i % blocks * width;
        visit(Block{i / blocks * along * inner + from, along, inner, std::min(width, inner - from)});
      }
    });
  }

  // For each element of a block the sum from `before` elements ahead of it to `after` behind it, along one axis after
  // the other.
  void add_up(const Block& block, Values& values, int64_t before, int64_t after) const {
    Values added;
    for (const int64_t axis : axes) {
      const auto step = static_cast<int64_t>(elements(axis + 1, last_axis + 1) * block.across);
      const int64_t line = extents[static_cast<size_t>(axis)] * step;
      added.assign(values.size(), 0);
      for (size_t first = 0; first < values.size(); first += static_cast<size_t>(line)) {
        for (int64_t by = -before * step; by <= after * step; by += step) {
          const int64_t end = line - std::max<int64_t>(by, 0);
          for (int64_t i = std::max<int64_t>(-by, 0); i < end; ++i) {
            added[first + static_cast<size_t>(i)] += values[first + static_cast<size_t>(i + by)];
          }
        }
      }
      values.swap(added);
    }
  }

  // s of a sum of squares, and s^-exponent.
  double s_of(double squares) const { return k + scale * squares; }
  double power(double s) const { return std::pow(s, -exponent); }

  // The most that s^-exponent moves where s becomes `least` or `most`; `power_of_least` is the former's.
  double power_moves(double s, double least, double most, double power_of_least) const {
    const double step = std::max(s - least, most - s);
    // No steeper than at the least s, and hardly less steep at s.
    if (step * (1 + exponent) <= 0x1p-10 * least) return exponent * step * power_of_least / least;
    const double of_s = power(s);
    return std::max(power_of_least - of_s, of_s - power(most));
  }

 private:
  // Along the dimensions from `first` on, before `last`.
  size_t elements(int64_t first, int64_t last) const {
    size_t product = 1;
    for (int64_t d = first; d < last; ++d) product *= static_cast<size_t>(extents[static_cast<size_t>(d)]);
    return product;
  }
};

// x, and |x - means|.
class Distances {
 public:
  explicit Distances(const Question& asked) : x_(floats_of(asked, "x")) {
    if (asked.plain.find("means") != nullptr) means_ = floats_of(asked, "means");
  }
  double x(size_t element) const { return x_[element]; }
  double operator[](size_t element) const {
    return std::fabs(means_.empty() ? x(element) : x(element) - means_[element]);
  }

 private:
  std::vector<float> x_, means_;
};

}  // namespace

std::vector<float> of_local_norm_forward(const Question& asked) {
  const LocalNormForward norm = LocalNormForward::of(asked.plain);
  const Windows windows(norm, asked);
  const Distances distances(asked);
  std::vector<float> slack(asked.perturbations.size());
  windows.for_each_block([&](const Block& block) {
    Values squares(block.size()), first_order(block.size()), of_perturbations(block.size());
    block.for_each([&](size_t i, size_t element) {
      const double distance = distances[element], perturbation = asked.perturbations[element];
      squares[i] = distance * distance;
      first_order[i] = times(perturbation, distance);
      of_perturbations[i] = perturbation * perturbation;
    });
    for (Values* const values : {&squares, &first_order, &of_perturbations}) {
      windows.add_up(block, *values, windows.behind, windows.ahead);
    }
    block.for_each([&](size_t i, size_t element) {
      const double farthest = squares[i] + 2 * first_order[i] + of_perturbations[i];
      const double least = windows.s_of(std::max(0.0, squares[i] - 2 * first_order[i])), most = windows.power(least);
      const double of_power = windows.power_moves(windows.s_of(squares[i]), least, windows.s_of(farthest), most);
      const bool may_overflow = std::isfinite(farthest) &&
                                std::max(1.0, windows.scale) * farthest + windows.k > std::numeric_limits<float>::max();
      const bool is_known = std::isfinite(of_perturbations[i]) && !may_overflow;
      const double distance =
          times(of_power, std::fabs(distances.x(element))) + times(asked.perturbations[element], most);
      slack[element] = is_known ? as_slack(times(distance, asked.scale)) : static_cast<float>(infinity);
    });
  });
  return slack;
}

std::vector<float> of_local_norm_backward(const Question& asked) {
  const LocalNormBackward norm = LocalNormBackward::of(asked.plain);
  const Windows windows(norm, asked);
  const Distances distances(asked);
  const double factor = 2 * std::fabs(windows.scale) * windows.exponent;
  std::vector<float> slack(asked.perturbations.size());
  windows.for_each_block([&](const Block& block) {
    Values squares(block.size()), powers(block.size()), sums(block.size());
    block.for_each([&](size_t i, size_t element) { squares[i] = distances[element] * distances[element]; });
    windows.add_up(block, squares, windows.behind, windows.ahead);
    block.for_each([&](size_t i, size_t element) {
      const double s = windows.s_of(squares[i]);
      powers[i] = windows.power(s);
      sums[i] = times(asked.perturbations[element], std::fabs(distances.x(element)) * (powers[i] / s));
    });
    windows.add_up(block, sums, windows.ahead, windows.behind);
    block.for_each([&](size_t i, size_t element) {
      double distance = times(sums[i], factor * distances[element]);
      if (asked.output == "dx") distance += times(asked.perturbations[element], powers[i]);
      slack[element] = as_slack(times(distance, asked.scale));
    });
  });
  return slack;
}

}  // namespace kiln::reference::slack
