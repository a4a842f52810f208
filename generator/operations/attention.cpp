#include "kiln/generator/operations/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

constexpr std::array all_aligns = {AttentionAlign::start, AttentionAlign::end};
constexpr int64_t most_elements = 1024;  // of a query, key or value: what a kernel's shared memory holds some of

void take_inputs(const Request& request, Attention& view) {
  view.q = request.at("q");
  view.k = request.at("k");
  view.v = request.at("v");
  view.bias = optional_operand(request, "bias");
  view.mask = optional_operand(request, "mask");
  view.lengths = optional_operand(request, "lengths");
  view.left = request.ints("left").front();
  view.right = request.ints("right").front();
  view.align = word_of(request, "align", all_aligns);
  view.drops = request.word("dropout") == "any";
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
}

Request request_of(const Attention& view, std::string operation) {
  Request request;
  request.operation = std::move(operation);
  request.attributes = {{"left", Ints{view.left}},
                        {"right", Ints{view.right}},
                        {"align", std::string(to_string(view.align))},
                        {"dropout", std::string(view.drops ? "any" : "none")}};
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return request;
}

// Parts that attention and its gradient share.
class AttentionOperation : public Operation {
 public:
  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {
        {"left", Ints{-1}, Printing::when_set, {}, "keys in front of its place that a query sees; -1: all"},
        {"right",
         Ints{-1},
         Printing::when_set,
         {},
         "keys behind its place that a query sees; -1: all; 0: causal attention"},
        {"align", std::string("start"), Printing::when_set, words_of(all_aligns),
         "a query's place among the keys. start: that of its number. end: the last query stands at the last key that "
         "counts"},
        {"dropout",
         std::string("none"),
         Printing::when_set,
         {"none", "any"},
         "any: weights become 0 with the probability `dropout`, a number of the call, and others grow"},
    };
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const final {
    static const std::vector<ScalarDefinition> scalars = {
        {"scale", 0.0F, 0.375F, "factor of the products of queries and keys; 0: 1 / sqrt(D)"},
        {"dropout", 0, 0.375F, "the share of weights that become 0, from 0 to 1; read if dropout=any"}};
    return scalars;
  }

  std::vector<ScalarRule> scalar_rules(const Request& request) const final {
    if (request.word("dropout") != "any") return {};  // not read
    return {{1, 0, 1, "give 0 to 1"}};
  }

  const std::vector<IntegerDefinition>& integers() const final {
    static const std::vector<IntegerDefinition> integers = {
        {"seed", 0x243f6a8885a308d3, "the key of the random sequence; read if dropout=any"},
        {"offset", 0x0000000113198a2e, "the place in that sequence: another one for each call"},
    };
    return integers;
  }

  void complete_attributes(Request& request) const final {
    expand(request, "left", 1, 1);
    expand(request, "right", 1, 1);
  }

  Work work(const Request& request) const final {
    Attention view;
    take_inputs(request, view);
    const double products = visible_pairs(view) * static_cast<double>(view.images() * view.heads());
    const auto depth = static_cast<double>(view.depth()), width = static_cast<double>(view.width());
    Work work;
    work.flops = 2 * products * factors_of(depth, width);
    work.factors = common_type(view.q, view.k);
    add_each_operand(request, work);
    return work;
  }

 protected:
  // Multiply-adds of a pair of a query and a key.
  virtual double factors_of(double depth, double width) const = 0;

  static OperandDefinition q() {
    return {
        .name = "q", .role = Role::input, .extents = "N H M D", .summary = "queries: images, heads, and their number"};
  }
  static OperandDefinition k() {
    return {.name = "k",
            .role = Role::input,
            .extents = "N K L D",
            .summary = "keys; K divides H: heads that follow each other share those of one"};
  }
  static OperandDefinition v() { return {.name = "v", .role = Role::input, .extents = "N K L E", .summary = "values"}; }
  static OperandDefinition bias() {
    return {.name = "bias",
            .role = Role::input,
            .printing = Printing::when_set,
            .extents = "N H M L",
            .left_out = "it is 0",
            .summary = "added to the scores; an extent of 1 repeats",
            .repeats = true};
  }
  static OperandDefinition mask() {
    return {.name = "mask",
            .role = Role::input,
            .printing = Printing::when_set,
            .extents = "N H M L",
            .left_out = "no key is hidden",
            .summary = "0 hides a key from a query; an extent of 1 repeats",
            .dtypes = DTypes{DType::u8},
            .repeats = true};
  }
  static OperandDefinition lengths() {
    return {.name = "lengths",
            .role = Role::input,
            .printing = Printing::when_set,
            .extents = "N",
            .left_out = "all keys count",
            .summary = "keys of each image, 0 to L; others count as the nearest of these",
            .dtypes = DTypes::only_i32};
  }
  static OperandDefinition gradient(std::string name, std::string extents, std::string summary) {
    return {.name = std::move(name),
            .role = Role::output,
            .printing = Printing::when_set,
            .extents = std::move(extents),
            .left_out = "it is not stored",
            .summary = std::move(summary)};
  }

  static std::string words(const Request& request, std::string_view result) {
    const Ints& left = request.ints("left");
    const Ints& right = request.ints("right");
    std::string window;
    if (left.front() >= 0) window += fmt::format(", left {}", left.front());
    if (right.front() >= 0) window += right.front() == 0 ? ", causal" : fmt::format(", right {}", right.front());
    if (request.word("align") != "start") window += " at the end";
    const TensorSpec &q = request.at("q"), &v = request.at("v");
    const std::string values = v.extents[3] == q.extents[3] ? "" : fmt::format(", values of {}", v.extents[3]);
    if (request.word("dropout") == "any") window += ", dropout";
    return fmt::format("attention {} of {}{}{}{}", extents_words(q), extents_words(request.at("k")), values, window,
                       operand_words(request, result));
  }

  // Refuses inputs from which the extents of outputs do not follow.
  static void check_inputs(const Request& request) {
    for (const char* operand : {"q", "k", "v"}) {
      const TensorSpec& spec = request.at(operand);
      if (spec.rank() != 4) {
        refuse(request, fmt::format("{} has {} dimensions", operand, spec.rank()),
               "they are images, heads, queries or keys, and the elements of each");
      }
      if (spec.extents[3] < 1 || spec.extents[3] > most_elements) {
        refuse(request, fmt::format("{} has elements of {} numbers", operand, spec.extents[3]),
               fmt::format("give 1 to {}", most_elements));
      }
    }
    const Ints &q = request.at("q").extents, &k = request.at("k").extents;
    if (q[2] > most_places || k[2] > most_places) {
      refuse(request, fmt::format("there are {} queries and {} keys", q[2], k[2]),
             fmt::format("places are i32: give at most {}", most_places));
    }
    if (k[1] < 1 || q[1] % k[1] != 0) {
      refuse(request, fmt::format("q has {} heads and k {}", q[1], k[1]),
             "the heads of k must divide those of q: equally many heads of q share each");
    }
    require(request, "k", {q[0], k[1], k[2], q[3]}, "N and D of q");
    require(request, "v", {q[0], k[1], k[2], request.at("v").extents[3]}, "N, K and L of k");
  }

  // Refuses the rest, of valid q, k and v.
  static void check_scores(const Request& request) {
    const Ints &q = request.at("q").extents, &k = request.at("k").extents;
    const Ints scores = {q[0], q[1], q[2], k[2]};
    for (const char* operand : {"bias", "mask"}) {
      const TensorSpec* spec = request.find(operand);
      if (spec == nullptr) continue;
      Ints expected = scores;
      for (size_t i = 0; i < 4 && spec->rank() == 4; ++i) {
        if (spec->extents[i] == 1) expected[i] = 1;
      }
      require(request, operand, expected, "N, H, M and L, or 1 where it repeats");
    }
    require(request, "lengths", {q[0]}, "one for each image");
    for (const char* side : {"left", "right"}) {
      const int64_t keys = request.ints(side).front();
      if (keys >= -1 && keys <= most_places) continue;
      refuse(request, fmt::format("{} is {}", side, keys),
             fmt::format("give 0 to {}, or -1 for all keys", most_places));
    }
    if (request.word("align") != "start" && request.ints("left").front() < 0 && request.ints("right").front() < 0) {
      refuse(request, "align=end without left or right", "every query sees all keys: leave it out");
    }
  }

  static void require(const Request& request, std::string_view operand, const Ints& extents, std::string_view reason) {
    if (const TensorSpec* spec = request.find(operand)) require_extents(request, operand, *spec, extents, reason);
  }

  static constexpr int64_t most_places = (int64_t{1} << 29) - 1;  // sums of three of them are i32
};

class AttentionForwardOperation final : public AttentionOperation {
 public:
  bool has_order_of_sums() const override { return true; }
  std::string_view name() const override { return "attention_forward"; }
  std::string_view summary() const override {
    return "attention: values, weighted by the softmax of queries times keys";
  }
  std::string short_form(const Request& request) const override { return words(request, "y"); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        q(),
        k(),
        v(),
        bias(),
        mask(),
        lengths(),
        {.name = "y",
         .role = Role::output,
         .extents = "N H M E",
         .left_out = "dtype of q, without gaps",
         .summary = "0 where a query sees no key"},
        {.name = "lse",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "N H M",
         .left_out = "it is not stored",
         .summary = "for the gradient: the logarithm of the sum of the scores' exponentials",
         .dtypes = DTypes::only_f32,
         .has_minus_infinity = true},
    };
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    for (const char* input : {"q", "k", "v"}) {
      if (operand != "y" || request.find(input) == nullptr) return std::nullopt;
    }
    check_inputs(request);
    return TensorSpec::packed(request.at("q").dtype, extents_of_y(request), dimension_letters(4));
  }

  void validate(const Request& request) const override {
    check_inputs(request);
    check_scores(request);
    const Ints y = extents_of_y(request);
    require(request, "y", y, "N, H and M of q, and E of v");
    require(request, "lse", {y[0], y[1], y[2]}, "N, H and M of q");
  }

 protected:
  double factors_of(double depth, double width) const override { return depth + width; }

 private:
  static Ints extents_of_y(const Request& request) {
    Ints extents = request.at("q").extents;
    extents.back() = request.at("v").extents.back();
    return extents;
  }
};

class AttentionBackwardOperation final : public AttentionOperation {
 public:
  bool adds_in_any_order() const override { return true; }
  std::string_view name() const override { return "attention_backward"; }
  std::string_view summary() const override { return "gradients of attention"; }
  std::string short_form(const Request& request) const override { return "gradients of " + words(request, "dq"); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "N H M E", .summary = "the gradient of y"},
        q(),
        k(),
        v(),
        {.name = "y",
         .role = Role::input,
         .extents = "N H M E",
         .summary = "as attention_forward gave it, without an epilogue"},
        {.name = "lse",
         .role = Role::input,
         .extents = "N H M",
         .summary = "as attention_forward gave it",
         .dtypes = DTypes::only_f32,
         .has_minus_infinity = true},
        bias(),
        mask(),
        lengths(),
        {.name = "dq",
         .role = Role::output,
         .extents = "N H M D",
         .left_out = "dtype of q, without gaps",
         .summary = "the gradient of q"},
        gradient("dk", "N K L D", "the gradient of k"),
        gradient("dv", "N K L E", "the gradient of v"),
        gradient("dbias", "N H M L", "the gradient of the scores; of a bias that repeats, reduce adds it up"),
    };
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    for (const char* input : {"q", "k", "v"}) {
      if (operand != "dq" || request.find(input) == nullptr) return std::nullopt;
    }
    check_inputs(request);
    const TensorSpec& q = request.at("q");
    return TensorSpec::packed(q.dtype, q.extents, dimension_letters(4));
  }

  void validate(const Request& request) const override {
    check_inputs(request);
    check_scores(request);
    const Ints &q = request.at("q").extents, &k = request.at("k").extents, &v = request.at("v").extents;
    for (const char* result : {"dy", "y"})
      require(request, result, {q[0], q[1], q[2], v[3]}, "N, H and M of q, and E of v");
    require(request, "lse", {q[0], q[1], q[2]}, "N, H and M of q");
    require(request, "dq", q, "those of q");
    require(request, "dk", k, "those of k");
    require(request, "dv", v, "those of v");
    require(request, "dbias", {q[0], q[1], q[2], k[2]}, "N, H and M of q, and L of k");
  }

 protected:
  // The scores again, the gradient of p, and three products.
  double factors_of(double depth, double width) const override { return 3 * depth + 2 * width; }
};

// The sum of `first` + i, not below 0 and not above `most`, over i from 0 to `count` - 1.
double sum_of_clamped(double first, double count, double most) {
  if (most <= 0) return 0;
  const double below = std::clamp(-first, 0.0, count);                // terms that are 0
  const double above = std::clamp(first + count - most, 0.0, count);  // terms that are `most`
  const double between = count - below - above, from = first + below;
  return between * (from + (between - 1) / 2) + above * most;
}

}  // namespace

std::string_view to_string(AttentionAlign align) {
  switch (align) {
    case AttentionAlign::start:
      return "start";
    case AttentionAlign::end:
      return "end";
  }
  return "?";
}

double visible_pairs(const Attention& attention) {
  const auto queries = static_cast<double>(attention.queries()), keys = static_cast<double>(attention.keys());
  const double place = attention.align == AttentionAlign::end ? keys - queries : 0;
  const double ends = attention.right < 0
                          ? queries * keys
                          : sum_of_clamped(place + static_cast<double>(attention.right) + 1, queries, keys);
  return attention.left < 0 ? ends : ends - sum_of_clamped(place - static_cast<double>(attention.left), queries, keys);
}

const Operation& attention_forward_operation() {
  static const AttentionForwardOperation definition;
  return definition;
}

const Operation& attention_backward_operation() {
  static const AttentionBackwardOperation definition;
  return definition;
}

AttentionForward AttentionForward::of(const Request& request) {
  AttentionForward view;
  take_inputs(request, view);
  view.y = request.at("y");
  view.lse = optional_operand(request, "lse");
  return view;
}

Request AttentionForward::request() const {
  Request request = request_of(*this, "attention_forward");
  request.operands = {{"q", q}, {"k", k}, {"v", v}};
  add_operand(request, "bias", bias);
  add_operand(request, "mask", mask);
  add_operand(request, "lengths", lengths);
  add_operand(request, "y", y);
  add_operand(request, "lse", lse);
  return finished(std::move(request));
}

AttentionBackward AttentionBackward::of(const Request& request) {
  AttentionBackward view;
  take_inputs(request, view);
  view.dy = request.at("dy");
  view.y = request.at("y");
  view.lse = request.at("lse");
  view.dq = request.at("dq");
  view.dk = optional_operand(request, "dk");
  view.dv = optional_operand(request, "dv");
  view.dbias = optional_operand(request, "dbias");
  return view;
}

Request AttentionBackward::request() const {
  Request request = request_of(*this, "attention_backward");
  request.operands = {{"dy", dy}, {"q", q}, {"k", k}, {"v", v}, {"y", y}, {"lse", lse}};
  add_operand(request, "bias", bias);
  add_operand(request, "mask", mask);
  add_operand(request, "lengths", lengths);
  add_operand(request, "dq", dq);
  add_operand(request, "dk", dk);
  add_operand(request, "dv", dv);
  add_operand(request, "dbias", dbias);
  return finished(std::move(request));
}

}  // namespace kiln
