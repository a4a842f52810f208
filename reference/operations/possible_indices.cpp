#include "kiln/reference/possible_indices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "evaluator.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/reference/tensor_memory.h"
#include "slack.h"

namespace kiln::reference {
namespace {

// An element among which an index picks, of which more is more extreme.
struct Element {
  double least, most;
  bool is_nan, is_open;
  int64_t position;
};

Element element_of(ReduceMode mode, double x, double perturbation, int64_t position) {
  if (mode == ReduceMode::min) x = -x;
  if (mode == ReduceMode::amax) x = std::fabs(x);
  Element element{x - perturbation, x + perturbation, std::isnan(x), !std::isfinite(perturbation), position};
  if (mode == ReduceMode::amax) element.least = std::max(element.least, 0.0);
  return element;
}

// Where the pick is NaN: the one that the operation names, and what stands before it in the order in which the
// operation prefers, if that may be NaN too.
template <class Iterator>
std::vector<double> among_nans(Iterator begin, Iterator end) {
  std::vector<double> positions;
  for (Iterator at = begin; at != end; ++at) {
    if (at->is_nan || at->is_open) positions.push_back(static_cast<double>(at->position));
    if (at->is_nan && !at->is_open) break;
  }
  return positions;
}

// Among equal elements the first is picked.
std::vector<double> among_numbers(const std::vector<Element>& elements) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  std::vector<double> after(elements.size() + 1, lowest);  // the largest `least` from an element on
  for (size_t i = elements.size(); i-- > 0;)
    after[i] = std::max(after[i + 1], elements[i].is_open ? lowest : elements[i].least);
  std::vector<double> positions;
  std::optional<double> before;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[i];
    const bool is_possible = (!before || element.most > *before) && element.most >= after[i + 1];
    if (is_possible || element.is_open) positions.push_back(static_cast<double>(element.position));
    if (!element.is_open) before = std::max(before.value_or(lowest), element.least);
  }
  return positions;
}

std::vector<double> possible_of(const std::vector<Element>& elements, bool prefers_last_nan) {
  const bool has_nan = std::any_of(elements.begin(), elements.end(),
                                   [](const Element& element) { return element.is_nan && !element.is_open; });
  if (!has_nan) return among_numbers(elements);
  return prefers_last_nan ? among_nans(elements.rbegin(), elements.rend())
                          : among_nans(elements.begin(), elements.end());
}

// Calls visit(position, coordinate in x) for the elements among which the index at `output` picks, in their order.
template <class Visit>
void for_each_element(const Reduce& reduce, std::span<const int64_t> output, const Visit& visit) {
  TensorSpec row = reduce.x;
  for (size_t i = 0; i < row.extents.size(); ++i) {
    if (reduce.y.extents[i] != 1) row.extents[i] = 1;
  }
  std::vector<int64_t> at(output.size());
  int64_t position = 0;
  for_each_coordinate(row, [&](std::span<const int64_t> along) {
    for (size_t i = 0; i < at.size(); ++i) at[i] = output[i] + along[i];
    visit(position++, at);
  });
}

template <class Visit>
void for_each_element(const PoolForward& pool, std::span<const int64_t> output, const Visit& visit) {
  TensorSpec window;
  for (int axis = 0; axis < pool.axes(); ++axis) window.extents.push_back(pool.axis(axis).window);
  std::vector<int64_t> at(output.begin(), output.end());
  for_each_coordinate(window, [&](std::span<const int64_t> tap) {
    int64_t position = 0;
    for (size_t i = 0; i < tap.size(); ++i) {
      const WindowAxis axis = pool.axis(static_cast<int>(i));
      at[i + 2] = axis.position(output[i + 2], tap[i]);
      if (!axis.inside(at[i + 2])) return;
      position = position * axis.extent + at[i + 2];
    }
    visit(position, at);
  });
}

template <class View>
std::map<size_t, std::vector<double>> possible_in(const View& view, ReduceMode mode, bool prefers_last_nan,
                                                  std::span<const std::byte> x, std::span<const float> perturbations) {
  std::map<size_t, std::vector<double>> possible;
  std::vector<Element> elements;
  size_t number = 0;
  for_each_coordinate(view.y, [&](std::span<const int64_t> output) {
    elements.clear();
    for_each_element(view, output, [&](int64_t position, std::span<const int64_t> at) {
      const double perturbation = perturbations[static_cast<size_t>(offset_of(view.x, at))];
      elements.push_back(element_of(mode, read(view.x, x, at), perturbation, position));
    });
    std::vector<double> positions = possible_of(elements, prefers_last_nan);
    if (positions.size() > 1) possible.emplace(number, std::move(positions));
    ++number;
  });
  return possible;
}

}  // namespace

namespace slack {

std::map<size_t, std::vector<double>> indices_of_pooling(const Request& plain, const Operands& operands,
                                                         std::span<const float> perturbations) {
  return possible_in(PoolForward::of(plain), ReduceMode::max, true, operands.at("x"), perturbations);
}

std::map<size_t, std::vector<double>> indices_of_reduce(const Request& plain, const Operands& operands,
                                                        std::span<const float> perturbations) {
  const Reduce reduce = Reduce::of(plain);
  return possible_in(reduce, reduce.mode, false, operands.at("x"), perturbations);
}

}  // namespace slack

std::map<size_t, std::vector<double>> possible_indices(
    const Request& plain, const std::map<std::string, std::span<const std::byte>>& operands,
    std::span<const float> perturbations) {
  if (std::ranges::all_of(perturbations, [](float perturbation) { return perturbation == 0; })) return {};
  return reference_of(plain.operation).indices(plain, operands, perturbations);
}

}  // namespace kiln::reference
