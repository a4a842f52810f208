// recognise_normalisations(): a normalisation that exporters wrote as arithmetic becomes the call that it is.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "effort.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/graph/optimise.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// The axes that a reduction or a normalisation goes along.
std::vector<int64_t> axes_of(const Call& call) {
  for (const Attribute& each : call.request.attributes) {
    if (each.name == "axes") return std::get<std::vector<int64_t>>(each.value);
  }
  return {};
}

/// Indices of nodes that were found, and the normalisation that they are.
struct Match {
  std::set<size_t> indices;
  ValueId x = 0, result = 0;
  std::vector<int64_t> axes;
  float epsilon = 0;
  NormMode mode = NormMode::standard;
  std::optional<ValueId> w, b;
};

/// y = (x - mean) / sqrt(mean of (x - mean)^2 + epsilon), then w y + b; without the mean for mode rms.
class Matcher {
 public:
  Matcher(const Graph& graph, const Edges& edges) : graph_(graph), edges_(edges) {}

  std::optional<Match> match(size_t index) {
    found_ = {};
    const Call* quotient = call(index, "tensor_op", "div");
    if (quotient == nullptr) return std::nullopt;
    found_.indices.insert(index);
    const ValueId centred = quotient->inputs[0].value;
    if (!match_deviation(quotient->inputs[1].value, centred) || !match_centred(centred)) return std::nullopt;
    found_.result = quotient->outputs.front().value;
    if (graph_.value(found_.result).extents != graph_.value(found_.x).extents) return std::nullopt;
    take_factor();
    take_shift();
    return is_closed() ? std::optional(found_) : std::nullopt;
  }

 private:
  /// The call at `index`, if it is plain and of that operation and mode.
  const Call* call(size_t index, const char* operation, const char* mode) const {
    const Call* found = std::get_if<Call>(&graph_.nodes()[index]);
    if (found == nullptr || found->request.operation != operation) return nullptr;
    const std::string* own = word_of(*found, "mode");
    return is_plain(*found) && own != nullptr && *own == mode ? found : nullptr;
  }
  /// The call that makes `value`; it joins what was found.
  const Call* maker(ValueId value, const char* operation, const char* mode) {
    const auto index = edges_.producer(value);
    const Call* found = index ? call(*index, operation, mode) : nullptr;
    if (found != nullptr) found_.indices.insert(*index);
    return found;
  }

  /// sqrt(mean of centred^2 + epsilon)
  bool match_deviation(ValueId value, ValueId centred) {
    const Call* root = maker(value, "tensor_op", "sqrt");
    const Call* sum = root == nullptr ? nullptr : maker(root->inputs[0].value, "tensor_op", "add");
    if (sum == nullptr) return false;
    size_t other = 1;
    std::optional<float> epsilon = number_of(graph_, edges_, sum->inputs[other].value);
    if (!epsilon) epsilon = number_of(graph_, edges_, sum->inputs[other = 0].value);
    const Call* mean = epsilon ? maker(sum->inputs[1 - other].value, "reduce", "mean") : nullptr;
    if (mean == nullptr || *epsilon < 0) return false;
    found_.epsilon = *epsilon;
    found_.axes = axes_of(*mean);
    const ValueId square = mean->inputs[0].value;
    if (const Call* power = maker(square, "tensor_op", "pow")) {
      return power->inputs[0].value == centred && number_of(graph_, edges_, power->inputs[1].value) == 2.0F;
    }
    const Call* product = maker(square, "tensor_op", "mul");
    return product != nullptr && product->inputs[0].value == centred && product->inputs[1].value == centred;
  }

  /// x - mean of x along the same axes; otherwise the mean counts as 0.
  bool match_centred(ValueId centred) {
    const auto index = edges_.producer(centred);
    const Call* difference = index ? call(*index, "tensor_op", "sub") : nullptr;
    const auto mean_index = difference == nullptr ? std::nullopt : edges_.producer(difference->inputs[1].value);
    const Call* mean = mean_index ? call(*mean_index, "reduce", "mean") : nullptr;
    const bool is_mean =
        mean != nullptr && mean->inputs[0].value == difference->inputs[0].value && axes_of(*mean) == found_.axes;
    found_.mode = is_mean ? NormMode::standard : NormMode::rms;
    found_.x = is_mean ? difference->inputs[0].value : centred;
    if (is_mean) found_.indices.insert({*index, *mean_index});
    return is_floating(graph_.value(found_.x).dtype);
  }

  /// Factor or summand that the one reader applies to the result so far.
  std::optional<ValueId> take(const char* mode) {
    const auto index = edges_.sole_user(found_.result);
    const Call* next = index ? call(*index, "tensor_op", mode) : nullptr;
    if (next == nullptr) return std::nullopt;
    const ValueId a = next->inputs[0].value, b = next->inputs[1].value;
    const ValueId other = a == found_.result ? b : a;
    const Value& value = graph_.value(next->outputs.front().value);
    const bool fits = other != found_.result && is_floating(graph_.value(other).dtype) &&
                      value.extents == graph_.value(found_.x).extents &&
                      graph_.value(other).extents.size() == value.extents.size();
    if (!fits) return std::nullopt;
    found_.indices.insert(*index);
    found_.result = next->outputs.front().value;
    return other;
  }
  void take_factor() { found_.w = take("mul"); }
  void take_shift() { found_.b = take("add"); }

  /// Whether nothing else reads what stands between, and the whole is of one kind: once, or each run.
  bool is_closed() const {
    return std::all_of(found_.indices.begin(), found_.indices.end(), [&](size_t index) {
      bool closed = true;
      for_each_output(graph_.nodes()[index], [&](ValueId id) {
        if (id == found_.result) return;
        const auto& users = edges_.users(id);
        closed = closed && !edges_.is_output(id) &&
                 std::all_of(users.begin(), users.end(), [&](size_t user) { return found_.indices.contains(user); });
      });
      return closed;
    });
  }

  const Graph& graph_;
  const Edges& edges_;
  Match found_;
};

void rewrite(Graph& graph, Edges& edges, const Match& match) {
  NormForward norm;
  norm.x = spec_of(graph.value(match.x));
  norm.y = spec_of(graph.value(match.result));
  norm.axes = match.axes;
  norm.mode = match.mode;
  Call call;
  call.inputs.push_back({"x", match.x});
  if (match.w) {
    norm.w = spec_of(graph.value(*match.w));
    call.inputs.push_back({"w", *match.w});
  }
  if (match.b) {
    norm.b = spec_of(graph.value(*match.b));
    call.inputs.push_back({"b", *match.b});
  }
  call.request = norm.request();
  call.request.operands.clear();
  call.outputs.push_back({"y", match.result});
  call.numbers.emplace_back("epsilon", match.epsilon);
  for (const size_t index : match.indices) {
    for (const std::string& origin : std::get<Call>(graph.nodes()[index]).origins) call.origins.push_back(origin);
  }
  std::vector<Node> nodes;
  nodes.emplace_back(std::move(call));
  edges.replace(match.indices, std::move(nodes));
}

/// A group normalisation as PyTorch's exporters write it: the groups of channels as channels, an
/// InstanceNormalization of these, the channels again, and then Mul and Add by channel. It becomes a norm_forward of N,
/// G, C/G and all spatial dimensions, which strides can say of channels that lie innermost, too.
class GroupNormMatcher {
 public:
  /// Whether constants are a number throughout: of each that was asked for.
  using Constants = std::map<std::pair<ValueId, double>, bool>;

  GroupNormMatcher(Graph& graph, const Edges& edges, Constants& constants)
      : graph_(graph), edges_(edges), constants_(constants) {}

  bool match(size_t index) {
    const Call* norm = std::get_if<Call>(&graph_.nodes()[index]);
    if (norm == nullptr || norm->request.operation != "norm_forward" || !is_plain(*norm)) return false;
    const std::string* mode = word_of(*norm, "mode");
    if (mode == nullptr || *mode != "standard" || has_fused_activation(*norm)) return false;
    norm_ = norm;
    const View* in = reshape_at(graph_, edges_.producer(find(norm->inputs, "x")->value));
    const auto behind = edges_.sole_user(norm->outputs.front().value);
    const View* out = reshape_at(graph_, behind);
    if (in == nullptr || out == nullptr) return false;
    source_ = in->source;
    result_ = out->result;
    const Extents &x = graph_.value(source_).extents, &groups = graph_.value(in->result).extents;
    const bool are_groups = x.size() >= 3 && groups.size() == 3 && x[0] == groups[0] && groups[1] > 0 &&
                            x[1] % groups[1] == 0 && x == graph_.value(result_).extents && count_elements(x) > 0;
    if (!are_groups || axes_of(*norm) != std::vector<int64_t>{2}) return false;
    for (const char* name : {"w", "b"}) {
      const Operand* of_groups = find(norm->inputs, name);
      if (of_groups != nullptr && graph_.value(of_groups->value).extents != Extents{1, groups[1], 1}) return false;
    }
    indices_ = {index, *behind};
    groups_ = groups[1];
    of_group_ = x[1] / groups[1];
    if (is_throughout(*norm, "w", 1) && is_throughout(*norm, "b", 0)) {
      w_ = take("mul");
      b_ = take("add");
    }
    return true;
  }

  /// The nodes to put in place of those at indices().
  std::vector<Node> nodes() {
    const Extents x = graph_.value(source_).extents;
    const DType dtype = graph_.value(source_).dtype;
    const Extents split{x[0], groups_, of_group_, count_elements(Extents(x.begin() + 2, x.end()))};
    std::vector<Node> nodes;
    NormForward norm;
    Call call;
    const auto read = [&](const char* name, ValueId from, Extents extents) {
      const ValueId value = graph_.add_value({{}, graph_.value(from).dtype, std::move(extents)});
      nodes.emplace_back(View{Reshape{}, from, value});
      call.inputs.push_back({name, value});
      return spec_of(graph_.value(value));
    };
    norm.x = read("x", source_, split);
    for (const auto& [name, of_channels, spec] : {std::tuple("w", w_, &norm.w), std::tuple("b", b_, &norm.b)}) {
      const Operand* of_groups = find(norm_->inputs, name);
      if (of_channels) {
        *spec = read(name, *of_channels, {1, groups_, of_group_, 1});
      } else if (of_groups != nullptr && !is_throughout(*norm_, name, name[0] == 'w' ? 1 : 0)) {
        *spec = read(name, of_groups->value, {1, groups_, 1, 1});
      }
    }
    const ValueId y = graph_.add_value({{}, dtype, split});
    norm.y = spec_of(graph_.value(y));
    norm.axes = {2, 3};
    call.request = norm.request();
    call.request.operands.clear();
    call.outputs.push_back({"y", y});
    call.numbers = norm_->numbers;
    for (const size_t index : indices_) {
      if (const Call* each = std::get_if<Call>(&graph_.nodes()[index])) append_origins(call.origins, each->origins);
    }
    nodes.emplace_back(std::move(call));
    nodes.emplace_back(View{Reshape{}, y, result_});
    return nodes;
  }

  const std::set<size_t>& indices() const { return indices_; }

 private:
  /// Whether an operand is left out, or a constant of that number throughout.
  bool is_throughout(const Call& call, std::string_view name, double number) const {
    const Operand* operand = find(call.inputs, name);
    if (operand == nullptr) return true;
    const auto constant = constant_behind(graph_, edges_, operand->value);
    if (!constant) return false;
    const auto [known, is_new] = constants_.try_emplace({*constant, number});
    if (is_new) {
      const std::vector<double> elements = elements_of(graph_, *constant);
      known->second = std::all_of(elements.begin(), elements.end(), [&](double each) { return each == number; });
    }
    return known->second;
  }

  /// Factor or summand of each channel that the one reader applies to the result so far.
  std::optional<ValueId> take(const char* mode) {
    const auto index = edges_.sole_user(result_);
    const Call* next = index ? std::get_if<Call>(&graph_.nodes()[*index]) : nullptr;
    const std::string* own = next == nullptr ? nullptr : word_of(*next, "mode");
    const bool is_next = own != nullptr && next->request.operation == "tensor_op" && *own == mode && is_plain(*next);
    if (!is_next) return std::nullopt;
    const ValueId a = next->inputs[0].value, b = next->inputs[1].value, other = a == result_ ? b : a;
    const Value &value = graph_.value(other), &given = graph_.value(next->outputs.front().value);
    Extents channels(given.extents.size(), 1);
    channels[1] = groups_ * of_group_;
    if (given.extents != graph_.value(source_).extents || given.dtype != graph_.value(source_).dtype ||
        value.extents != channels || !is_floating(value.dtype)) {
      return std::nullopt;
    }
    indices_.insert(*index);
    result_ = next->outputs.front().value;
    return other;
  }

  Graph& graph_;
  const Edges& edges_;
  Constants& constants_;
  const Call* norm_ = nullptr;
  ValueId source_ = 0, result_ = 0;
  int64_t groups_ = 0, of_group_ = 0;
  std::optional<ValueId> w_, b_;
  std::set<size_t> indices_;
};

void recognise_group_norms(Graph& graph) {
  Edges edges(graph);
  GroupNormMatcher::Constants constants;
  for (size_t index = 0; index < graph.nodes().size();) {
    GroupNormMatcher matcher(graph, edges, constants);
    if (edges.is_free(index) || !matcher.match(index)) {
      ++index;
      continue;
    }
    edges.replace(matcher.indices(), matcher.nodes());
    if (!Effort::may_go_on(edges)) return;
  }
}

}  // namespace

void recognise_normalisations(Graph& graph) {
  recognise_group_norms(graph);
  Edges edges(graph);
  for (size_t index = 0; index < graph.nodes().size();) {
    const auto match = edges.is_free(index) ? std::nullopt : Matcher(graph, edges).match(index);
    if (!match) {
      ++index;
      continue;
    }
    rewrite(graph, edges, *match);
    if (!Effort::may_go_on(edges)) return;
    index = *match->indices.begin();  // those behind have moved up
  }
}

}  // namespace kiln::graph
