#include "attention_match.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "kiln/graph/strides.h"
#include "kiln/reference/convert.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

constexpr size_t most_nodes_of_chain = 64;

int64_t axis_of(const Call& softmax) {
  for (const Attribute& each : softmax.request.attributes) {
    if (each.name == "axis") return std::get<std::vector<int64_t>>(each.value).front();
  }
  return -1;
}

/// Whether a number stands for "hidden": where a query sees a key at all, one whose score is `fill` has a weight of 0.
///
/// -inf does. A finite number does unless all scores that the query sees lie below fill + 104, where
/// exp(fill - maximum) starts to count. Scores of -1e8 take queries and keys with elements of some thousands, and f16
/// has none below -65504. Scores of -1e4 can be: that number stays a number.
bool hides(float fill, DType dtype) {
  return fill <= (dtype == DType::f16 ? -65504.0F : -1e8F);
}

/// Whether a mask and a bias that both hide a key by this number make its score -inf.
bool is_lowest(float fill) {
  return fill <= -3e38F;
}

/// Whether the view leaves rows whole.
bool keeps_rows(const Graph& graph, const View& view) {
  const Extents &from = graph.value(view.source).extents, &to = graph.value(view.result).extents;
  return !from.empty() && !to.empty() && from.back() == to.back();
}

/// With four dimensions: the first two of five as one.
Extents four(Extents extents) {
  while (extents.size() < 4) extents.insert(extents.end() - 2, 1);
  if (extents.size() > 4) {
    extents[1] *= extents[0];
    extents.erase(extents.begin());
  }
  return extents;
}

/// The constant that views alone make `id` of, and where they find its elements; nothing if calls do.
std::optional<std::pair<ValueId, Region>> seen_constant(const Graph& graph, const Edges& edges, ValueId id) {
  std::vector<const View*> views;
  while (!graph.is_constant(id)) {
    const auto index = edges.producer(id);
    const View* view = index ? std::get_if<View>(&graph.nodes()[*index]) : nullptr;
    if (view == nullptr || views.size() == most_nodes_of_chain) return std::nullopt;
    views.push_back(view);
    id = view->source;
  }
  std::optional<Region> region = packed(graph.value(id).extents);
  for (auto view = views.rbegin(); region && view != views.rend(); ++view) {
    region = seen_through((*view)->kind, *region, graph.value((*view)->result).extents);
  }
  return region ? std::optional(std::pair(id, *region)) : std::nullopt;
}

/// A constant mask that hides the keys behind a query's place.
struct Triangle {
  ScoreOperand operand;
  bool is_bias = false;
  float fill = 0;  ///< The highest, of a bias.
  AttentionAlign align = AttentionAlign::start;
};

class AttentionMatcher {
 public:
  AttentionMatcher(const Graph& graph, const Edges& edges, int64_t& elements_left)
      : graph_(graph), edges_(edges), elements_left_(elements_left) {}

  std::optional<AttentionMatch> match(size_t index) {
    const Call* softmax = call(index, "softmax_forward");
    if (softmax == nullptr) return std::nullopt;
    const ValueId scores = softmax->inputs[0].value;
    const auto rank = static_cast<int64_t>(graph_.value(scores).extents.size());
    const std::string* mode = word_of(*softmax, "mode");
    if (mode == nullptr || *mode != "accurate" || axis_of(*softmax) != rank - 1) return std::nullopt;
    found_.indices = {index};
    ValueId weights = softmax->outputs.front().value;
    const auto last = reader_of(weights);
    const Call* product = last ? call(*last, "gemm") : nullptr;
    if (product == nullptr || find(product->inputs, "a")->value != weights) return std::nullopt;
    found_.indices.insert(*last);
    found_.v = find(product->inputs, "b")->value;
    found_.result = product->outputs.front().value;
    return match_scores(scores, index) && settle_triangle() && fits(weights) ? std::optional(found_) : std::nullopt;
  }

 private:
  const Call* call(size_t index, std::string_view operation) const {
    const Call* found = std::get_if<Call>(&graph_.nodes()[index]);
    return found != nullptr && found->request.operation == operation && is_plain(*found) ? found : nullptr;
  }

  const Call* function(size_t index, std::string_view mode) const {
    const Call* found = call(index, "tensor_op");
    const std::string* own = found == nullptr ? nullptr : word_of(*found, "mode");
    return own != nullptr && *own == mode ? found : nullptr;
  }

  ValueId result_of(size_t index) const {
    ValueId result = 0;
    for_each_output(graph_.nodes()[index], [&](ValueId id) { result = id; });
    return result;
  }

  /// The result of the view at `index` that leaves the rows of weights whole.
  std::optional<ValueId> rows_behind(size_t index) {
    const View* view = reshape_at(graph_, index);
    if (view == nullptr || !keeps_rows(graph_, *view)) return std::nullopt;
    found_.indices.insert(index);
    return view->result;
  }

  /// The weights with 0 in the place of NaN, as PyTorch writes it: attention gives 0 for a query that sees no key.
  std::optional<ValueId> without_nan(ValueId weights) {
    const auto& users = edges_.users(weights);
    if (users.size() != 3 || edges_.is_output(weights)) return std::nullopt;
    const size_t first = *users.begin(), last = *users.rbegin();
    const Call *differs = function(first, "ne"), *select = function(last, "select");
    if (users.count(first) != 2 || differs == nullptr || select == nullptr) return std::nullopt;
    const ValueId is_nan = differs->outputs.front().value;
    const bool zeroes = find(select->inputs, "a")->value == is_nan && edges_.sole_user(is_nan) == last &&
                        number_of(graph_, edges_, find(select->inputs, "b")->value) == 0.0F;
    if (!zeroes) return std::nullopt;
    found_.indices.insert({first, last});
    return select->outputs.front().value;
  }

  /// The reader of the weights, which become those that it reads.
  std::optional<size_t> reader_of(ValueId& weights) {
    while (found_.indices.size() < most_nodes_of_chain) {
      const auto reader = edges_.sole_user(weights);
      const auto next = reader ? rows_behind(*reader) : without_nan(weights);
      if (!next) return reader;
      weights = *next;
    }
    return std::nullopt;
  }

  /// Goes up from the scores that `reader` alone reads: masks, biases, a scale, and the product of queries and keys.
  bool match_scores(ValueId scores, size_t reader) {
    const auto index = edges_.sole_user(scores) == reader ? edges_.producer(scores) : std::nullopt;
    if (!index || found_.indices.size() >= most_nodes_of_chain) return false;
    found_.indices.insert(*index);
    shapes_.push_back(graph_.value(scores).extents);
    if (const View* view = reshape_at(graph_, index)) {
      return keeps_rows(graph_, *view) && match_scores(view->source, *index);
    }
    if (const Call* product = call(*index, "gemm")) {
      found_.q = unscaled(find(product->inputs, "a")->value, *index);
      found_.kt = unscaled(find(product->inputs, "b")->value, *index);
      return true;
    }
    const Call* function = call(*index, "tensor_op");
    return function != nullptr && match_call(*function, *index);
  }

  bool match_call(const Call& function, size_t index) {
    const std::string* mode = word_of(function, "mode");
    if (mode == nullptr || function.inputs.size() < 2) return false;
    if (*mode == "select") return match_mask(function, index);
    const ValueId a = function.inputs[0].value, b = function.inputs[1].value;
    if (*mode == "add") return match_bias(a, b, index) || match_bias(b, a, index);
    const std::optional<float> factor = number_of(graph_, edges_, b);
    if (*mode == "mul") {
      if (factor) return take_scale(*factor) && match_scores(a, index);
      const std::optional<float> first = number_of(graph_, edges_, a);
      return first && take_scale(*first) && match_scores(b, index);
    }
    return *mode == "div" && factor && *factor != 0 && take_scale(1 / static_cast<double>(*factor)) &&
           match_scores(a, index);
  }

  bool take_scale(double factor) {
    const double scale = found_.scale * factor;
    if (!std::isfinite(static_cast<float>(scale)) || static_cast<float>(scale) == 0) return false;
    found_.scale = scale;
    return true;
  }

  /// A factor of the product without the number that it is multiplied by, for this product alone.
  ValueId unscaled(ValueId factor, size_t reader) {
    const auto index = edges_.sole_user(factor) == reader ? edges_.producer(factor) : std::nullopt;
    const Call* product = index ? function(*index, "mul") : nullptr;
    if (product == nullptr || edges_.is_fixed(factor)) return factor;
    for (const size_t number : {size_t{1}, size_t{0}}) {
      const ValueId other = product->inputs[1 - number].value;
      const std::optional<float> scale = number_of(graph_, edges_, product->inputs[number].value);
      const bool is_same = graph_.value(other).extents == graph_.value(factor).extents &&
                           graph_.value(other).dtype == graph_.value(factor).dtype;
      if (!scale || !is_same || !take_scale(*scale)) continue;
      found_.indices.insert(*index);
      return other;
    }
    return factor;
  }

  /// The bias is added behind the scale: a scale of both would stand in front of it here.
  bool match_bias(ValueId scores, ValueId bias, size_t reader) {
    const Extents& whole = graph_.value(result_of(reader)).extents;
    if (found_.scale != 1 || scores == bias || graph_.value(scores).extents != whole) return false;
    const AttentionMatch before = found_;
    const auto triangle_before = triangle_;
    const size_t shapes_before = shapes_.size();
    if (take_bias({bias, whole}) && match_scores(scores, reader)) return true;
    found_ = before;
    triangle_ = triangle_before;
    shapes_.resize(shapes_before);
    return false;
  }

  bool take_bias(const ScoreOperand& bias) {
    const DType dtype = graph_.value(bias.value).dtype;
    if (!is_floating(dtype)) return false;
    if (auto triangle = triangle_of(bias, nullptr)) {
      triangle_ = std::move(triangle);
      return true;
    }
    found_.biases.push_back(bias);
    return found_.biases.size() <= 2;
  }

  /// Scores, and a number in the place of those that a mask hides.
  bool match_mask(const Call& select, size_t index) {
    const Value& result = graph_.value(select.outputs.front().value);
    const ValueId flags = find(select.inputs, "a")->value, b = find(select.inputs, "b")->value,
                  c = find(select.inputs, "c")->value;
    const std::optional<float> fill_b = number_of(graph_, edges_, b), fill_c = number_of(graph_, edges_, c);
    const std::optional<float> fill = fill_b ? fill_b : fill_c;
    const ValueId scores = fill_b ? c : b;
    const bool is_mask = fill && hides(*fill, result.dtype) && graph_.value(flags).dtype == DType::u8 &&
                         graph_.value(scores).extents == result.extents && found_.scale == 1;
    return is_mask && take_mask({{flags, result.extents}, fill_b.has_value(), *fill}) && match_scores(scores, index);
  }

  bool take_mask(const ScoreMask& mask) {
    if (auto triangle = triangle_of(mask.flags, &mask)) {
      triangle_ = std::move(triangle);
      return true;
    }
    if (found_.mask) return false;
    found_.mask = mask;
    return true;
  }

  /// A constant that hides, for each query, the keys behind its place and no others: flags of `mask`, or a bias.
  std::optional<Triangle> triangle_of(const ScoreOperand& operand, const ScoreMask* mask) {
    const Value& value = graph_.value(operand.value);
    const Extents& whole = operand.whole;
    if (triangle_ || whole.size() < 2 || value.extents.size() != whole.size()) return std::nullopt;
    const int64_t queries = whole[whole.size() - 2], keys = whole.back();
    Extents square(whole.size(), 1);
    square[whole.size() - 2] = queries;
    square.back() = keys;
    if (value.extents != square || queries < 2 || keys < queries || queries > elements_left_ / keys) {
      return std::nullopt;
    }
    const auto seen = seen_constant(graph_, edges_, operand.value);
    if (!seen) return std::nullopt;
    const Region& region = seen->second;
    const std::byte* bytes = graph_.bytes(seen->first)->data();
    const auto size = static_cast<int64_t>(size_of(value.dtype));
    const Extents& strides = region.strides;
    const auto element = [&](int64_t query, int64_t key) {
      const int64_t at = region.offset + query * strides[strides.size() - 2] + key * strides.back();
      return reference::load(value.dtype, bytes + at * size);
    };
    const auto hidden = [&](double each) {
      return mask == nullptr ? hides(static_cast<float>(each), value.dtype) : (each != 0) == mask->hides;
    };
    Triangle found{operand, mask == nullptr, mask == nullptr ? -std::numeric_limits<float>::infinity() : mask->fill};
    const int64_t last = keys - queries;  // place of the first query where the last one is at the end
    if (last > 0 && !hidden(element(0, last))) found.align = AttentionAlign::end;
    const int64_t first = found.align == AttentionAlign::end ? last : 0;
    for (int64_t query = 0; query < queries; ++query) {
      elements_left_ -= keys;
      for (int64_t key = 0; key < keys; ++key) {
        const double each = element(query, key);
        if (hidden(each) != (key > first + query)) return std::nullopt;
        if (mask != nullptr) continue;
        if (key > first + query) {
          found.fill = std::max(found.fill, static_cast<float>(each));
        } else if (each != 0) {
          return std::nullopt;
        }
      }
    }
    return found;
  }

  /// Makes a rule on places of the triangle. Its finite numbers stay numbers where something else may hide all keys
  /// that a query sees: then the keys behind its place count. Of the lowest number they count only where nothing else
  /// hides them, in rows of padding: that is given up, for old exports of GPT-2 have it.
  bool settle_triangle() {
    const bool is_alone = found_.biases.empty() && !found_.mask;
    if (found_.mask && std::isfinite(found_.mask->fill) && (triangle_ || !found_.biases.empty())) return false;
    if (!triangle_) return true;
    const float fill = triangle_->fill;
    if (std::isinf(fill) || is_alone || (!found_.mask && is_lowest(fill))) {
      found_.causal = triangle_->align;
      return true;
    }
    if (!triangle_->is_bias) return false;
    found_.biases.push_back(triangle_->operand);
    return found_.biases.size() <= 2;
  }

  /// Whether images and heads are the same for queries, keys and values.
  bool fits(ValueId weights) {
    const Extents &q = graph_.value(found_.q).extents, &kt = graph_.value(found_.kt).extents,
                  &p = graph_.value(weights).extents, &v = graph_.value(found_.v).extents;
    const auto batch_of = [](const Extents& extents) { return Extents(extents.begin(), extents.end() - 2); };
    for (const Extents* each : {&q, &kt, &p, &v}) {
      if (each->size() < 2 || each->size() > 5) return false;
    }
    const int64_t queries = q[q.size() - 2], keys = kt.back();
    const auto batches = [&](const Extents& extents) { return count_elements(batch_of(extents)); };
    // Scores without elements have many shapes.
    if (queries == 0 || keys == 0 || batch_of(q) != batch_of(kt) || batch_of(p) != batch_of(v) ||
        batches(q) != batches(p)) {
      return false;
    }
    // Heads are told from images where the scores have both, or the queries before they were reshaped.
    Extents scores = batch_of(q);
    scores.insert(scores.end(), {queries, keys});
    if (const View* view = reshape_at(graph_, edges_.producer(found_.q))) {
      shapes_.push_back(graph_.value(view->source).extents);
      if (!shapes_.back().empty() && shapes_.back().back() == q.back()) shapes_.back().back() = keys;
    }
    for (const Extents& shape : shapes_) {
      const bool is_better =
          shape.size() >= 2 && shape.size() <= 4 && (scores.size() > 4 || shape.size() > scores.size());
      if (is_better && shape[shape.size() - 2] == queries && shape.back() == keys) {
        scores = shape;
      }
    }
    found_.scores = four(scores);
    const auto reader = edges_.sole_user(found_.result);
    const View* view = reshape_at(graph_, reader);
    if (view != nullptr &&
        graph_.value(view->result).extents == Extents{found_.scores[0], found_.scores[1], queries, v.back()}) {
      found_.indices.insert(*reader);
      found_.result = view->result;
    }
    // Calls that run once stay apart from those of each run.
    return std::none_of(found_.indices.begin(), found_.indices.end(),
                        [&](size_t index) { return edges_.is_fixed(result_of(index)); });
  }

  const Graph& graph_;
  const Edges& edges_;
  int64_t& elements_left_;
  AttentionMatch found_;
  std::optional<Triangle> triangle_;
  std::vector<Extents> shapes_;  // of the scores on their way
};

}  // namespace

std::optional<AttentionMatch> attention_at(const Graph& graph, const Edges& edges, size_t index,
                                           int64_t& elements_left) {
  return AttentionMatcher(graph, edges, elements_left).match(index);
}

}  // namespace kiln::graph
