#include "kiln/graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "kiln/base/checked.h"
#include "kiln/base/error.h"
#include "kiln/generator/scalar_rules.h"

namespace kiln::graph {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, what);
}

std::string print(const Extents& extents) {
  return extents.empty() ? "a single element" : fmt::format("{}", fmt::join(extents, "x"));
}

Scale class_of(float number) {
  if (number == 0) return Scale::zero;
  return number == 1 ? Scale::one : Scale::any;
}

/// Whether user code reads a number of that name: then it is not the call's own.
bool is_scalar_of_code(const Request& request, const std::string& name) {
  const Expression* code = request.user_code.expression();
  return code != nullptr && std::find(code->scalars().begin(), code->scalars().end(), name) != code->scalars().end();
}

/// Throws Error(invalid_argument) for a number that a run of the call would refuse.
void check_numbers(const Request& request, const Numbers& numbers) {
  RunValues values = usual_values(request);
  const Operation& definition = operation(request.operation);
  for (const auto& [name, number] : numbers) {
    if (is_scalar_of_code(request, name)) continue;
    for (size_t i = 0; i < definition.scalars().size(); ++i) {
      if (definition.scalars()[i].name == name) values.operation_scalars[i] = number;
    }
  }
  for (const ScalarRule& rule : definition.scalar_rules(request)) {
    if (!is_kept(rule, values)) refuse_scalar(request, rule, values);
  }
}

}  // namespace

int64_t count_elements(const Extents& extents) {
  if (extents.size() > most_dimensions) {
    refuse(fmt::format("a tensor has {} dimensions, expected up to {}", extents.size(), most_dimensions));
  }
  const std::optional<int64_t> elements = checked_elements(extents, most_elements);
  if (elements) return *elements;
  const auto negative = std::find_if(extents.begin(), extents.end(), [](int64_t extent) { return extent < 0; });
  if (negative != extents.end()) refuse(fmt::format("an extent is {}, expected 0 or more", *negative));
  refuse(fmt::format("a tensor of {} has more than 2^40 elements, the most in a model", print(extents)));
}

void Graph::add_node(Node node) {
  if (nodes_.size() >= most_nodes) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the model becomes more than {} calls and views, the most that Kiln plans", most_nodes),
                "split it into several models");
  }
  nodes_.push_back(std::move(node));
}

ValueId Graph::add_value(Value value) {
  (void)count_elements(value.extents);
  values_.push_back(std::move(value));
  constants_.emplace_back();
  return values_.size() - 1;
}

ValueId Graph::input(std::string name, DType dtype, Extents extents) {
  const ValueId id = add_value({name, dtype, std::move(extents)});
  inputs_.push_back({std::move(name), id});
  return id;
}

ValueId Graph::constant(std::string name, DType dtype, Extents extents, Bytes bytes) {
  const int64_t expected = count_elements(extents) * size_of(dtype);
  if (static_cast<int64_t>(bytes->size()) != expected) {
    refuse(fmt::format("constant '{}' of {} {} has {} bytes, expected {}", name, to_string(dtype), print(extents),
                       bytes->size(), expected));
  }
  const ValueId id = add_value({std::move(name), dtype, std::move(extents)});
  constants_[id] = std::move(bytes);
  return id;
}

void Graph::output(std::string name, ValueId value) {
  (void)this->value(value);
  outputs_.push_back({std::move(name), value});
}

ValueId Graph::add_view(ViewKind kind, ValueId source, Extents extents) {
  const Value& from = value(source);
  const ValueId result = add_value({from.name, from.dtype, std::move(extents)});
  add_node(View{std::move(kind), source, result});
  return result;
}

ValueId Graph::reshape(ValueId source, Extents extents) {
  if (value(source).extents == extents) return source;
  if (count_elements(extents) != count_elements(value(source).extents)) {
    refuse(
        fmt::format("{} cannot become {}: the elements are not as many", print(value(source).extents), print(extents)));
  }
  return add_view(Reshape{}, source, std::move(extents));
}

ValueId Graph::permute(ValueId source, std::vector<size_t> order) {
  const Extents& from = value(source).extents;
  std::vector<size_t> sorted = order, identity(from.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(identity.begin(), identity.end(), size_t{0});
  if (sorted != identity) refuse(fmt::format("{} is no order of {} dimensions", fmt::join(order, ","), from.size()));
  if (order == identity) return source;
  Extents extents;
  for (const size_t d : order) extents.push_back(from[d]);
  return add_view(Permute{std::move(order)}, source, std::move(extents));
}

ValueId Graph::slice(ValueId source, Extents begin, Extents extents, Extents step) {
  const Extents& from = value(source).extents;
  if (begin.size() != from.size() || extents.size() != from.size() || step.size() != from.size()) {
    refuse(fmt::format("a part of {} needs a begin, an extent and a step for each dimension", print(from)));
  }
  bool whole = true;
  for (size_t d = 0; d < from.size(); ++d) {
    if (extents[d] <= 1) step[d] = 1;  // the next element is nobody's
    const bool starts = begin[d] >= 0 && begin[d] <= from[d] && step[d] >= 1 && extents[d] >= 0;
    const bool is_inside = starts && (extents[d] == 0 || extents[d] - 1 <= (from[d] - 1 - begin[d]) / step[d]);
    if (!is_inside || (extents[d] > 0 && begin[d] == from[d])) {
      refuse(fmt::format("a part of {} elements from {} on, {} apart, is not inside {}", extents[d], begin[d], step[d],
                         print(from)));
    }
    whole = whole && extents[d] == from[d];
  }
  if (whole) return source;
  return add_view(Slice{std::move(begin), std::move(step)}, source, std::move(extents));
}

ValueId Graph::repeat(ValueId source, Extents extents) {
  const Extents& from = value(source).extents;
  if (from == extents) return source;
  bool fits = from.size() == extents.size();
  for (size_t d = 0; fits && d < from.size(); ++d) fits = from[d] == 1 || from[d] == extents[d];
  if (!fits) refuse(fmt::format("{} does not repeat to {}", print(from), print(extents)));
  return add_view(Repeat{}, source, std::move(extents));
}

ValueId Graph::concat(std::vector<ValueId> parts, size_t axis) {
  if (parts.empty() || axis >= value(parts.front()).extents.size()) {
    refuse("there is nothing to put together, or no such dimension");
  }
  Value whole = value(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    Extents part = value(parts[i]).extents;
    const int64_t extent = part.size() > axis ? part[axis] : 0;
    if (part.size() > axis) part[axis] = whole.extents[axis];
    if (part != whole.extents || value(parts[i]).dtype != whole.dtype) {
      refuse(fmt::format("{} {} does not fit {} {}: only extents along dimension {} may differ",
                         to_string(value(parts[i]).dtype), print(value(parts[i]).extents), to_string(whole.dtype),
                         print(whole.extents), axis));
    }
    whole.extents[axis] += extent;
    if (whole.extents[axis] > most_elements) {
      refuse(fmt::format("parts have more than 2^40 elements along dimension {} together", axis));
    }
  }
  if (parts.size() == 1) return parts.front();
  const ValueId result = add_value(std::move(whole));
  add_node(Concat{std::move(parts), axis, result});
  return result;
}

std::vector<Operand> Graph::call(const Request& request, std::vector<Operand> inputs, Numbers numbers,
                                 Integers integers) {
  Call call;
  call.request = request;
  call.request.operands.clear();
  for (const Operand& input : inputs) {
    const TensorSpec& spec = request.at(input.name);
    const Value& given = value(input.value);
    if (spec.extents != given.extents || spec.dtype != given.dtype) {
      throw Error(ErrorCode::internal, fmt::format("operand {} of {} is {} {}, but '{}' is {} {}", input.name,
                                                   request.operation, to_string(spec.dtype), print(spec.extents),
                                                   given.name, to_string(given.dtype), print(given.extents)));
    }
  }
  for (const kiln::Operand& operand : request.operands) {
    const bool given =
        std::any_of(inputs.begin(), inputs.end(), [&](const Operand& i) { return i.name == operand.name; });
    if (given) continue;
    if (!is_written(request, operand.name)) {
      throw Error(ErrorCode::internal, fmt::format("operand {} of {} is not given", operand.name, request.operation));
    }
    call.outputs.push_back({operand.name, add_value({{}, operand.spec.dtype, operand.spec.extents})});
  }
  // The result first, whatever the order of operands.
  const std::string& result = result_of(request).name;
  std::stable_partition(call.outputs.begin(), call.outputs.end(), [&](const Operand& o) { return o.name == result; });
  call.inputs = std::move(inputs);
  for (const auto& [name, number] : numbers) {
    if (is_scalar_of_code(request, name)) continue;
    if (name == "alpha") call.request.blend.alpha = class_of(number);
    if (name == "beta") call.request.blend.beta = class_of(number);
  }
  check_numbers(request, numbers);
  call.numbers = std::move(numbers);
  call.integers = std::move(integers);
  if (!origin_.empty()) call.origins.push_back(origin_);
  std::vector<Operand> outputs = call.outputs;
  add_node(std::move(call));
  return outputs;
}

void for_each_input(const Node& node, const std::function<void(ValueId)>& see) {
  struct Visitor {
    const std::function<void(ValueId)>& see;
    void operator()(const Call& call) const {
      for (const Operand& input : call.inputs) see(input.value);
    }
    void operator()(const View& view) const { see(view.source); }
    void operator()(const Concat& concat) const {
      for (const ValueId part : concat.parts) see(part);
    }
  };
  std::visit(Visitor{see}, node);
}

void for_each_output(const Node& node, const std::function<void(ValueId)>& see) {
  struct Visitor {
    const std::function<void(ValueId)>& see;
    void operator()(const Call& call) const {
      for (const Operand& output : call.outputs) see(output.value);
    }
    void operator()(const View& view) const { see(view.result); }
    void operator()(const Concat& concat) const { see(concat.result); }
  };
  std::visit(Visitor{see}, node);
}

}  // namespace kiln::graph
