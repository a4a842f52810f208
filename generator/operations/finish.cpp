// finished(): from what a user gave to a complete, canonical, valid request.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kiln/base/nearest.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/generator/operation.h"
#include "operations/blends.h"
#include "operations/operations.h"
#include "operations/spatial.h"
#include "operations/user_operands.h"

namespace kiln {
namespace {

template <class Definition>
bool names(const std::vector<Definition>& definitions, const std::string& name) {
  return std::any_of(definitions.begin(), definitions.end(), [&](const auto& d) { return d.name == name; });
}

template <class Value>
void check_once(const Request& request, std::string_view what, const std::vector<Value>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (values[i].name == values[j].name) {
        refuse(request, fmt::format("{} {} stands twice", what, values[i].name), "give it once");
      }
    }
  }
}

void check_names(const Request& request, const Operation& operation) {
  check_once(request, "operand", request.operands);
  check_once(request, "attribute", request.attributes);
  for (const Operand& operand : request.operands) {
    if (is_user_operand(operand.name)) continue;
    if (!names(operation.operands(), operand.name)) {
      refuse(request, fmt::format("there is no operand {}", operand.name), "docs/request-syntax.md lists the operands");
    }
  }
  for (const Attribute& attribute : request.attributes) {
    if (!names(operation.attributes(), attribute.name)) {
      refuse(request, fmt::format("there is no attribute {}", attribute.name),
             "docs/request-syntax.md lists the attributes");
    }
  }
}

void check_blend(const Request& request, const Operation& operation) {
  const auto check = [&](std::string_view name, Scale scale) {
    if (scale == Scale::zero || scale == Scale::one || scale == Scale::any) return;
    refuse(request, fmt::format("{} is of class {}, which there is not", name, static_cast<int>(scale)),
           "give one of kiln::Scale");
  };
  check("alpha", request.blend.alpha);
  check("beta", request.blend.beta);
  if (request.blend != Blend{} && !operation.has_blend()) {
    refuse(request, "it has no alpha and no beta", "leave them out");
  }
}

void check_epilogue(const Request& request, const Operation& operation) {
  if (!request.epilogue.empty() && operation.stages().empty()) {
    refuse(request, "it takes no epilogue of stages", "write their function as user code, epilogue=user:NAME");
  }
  for (const EpilogueStage stage : request.epilogue) {
    if (to_string(stage) == "?") {
      refuse(request, fmt::format("there is no epilogue stage {}", static_cast<int>(stage)),
             "known are: bias add relu clip");
    }
  }
  std::vector<EpilogueStage> stages = request.epilogue;
  std::sort(stages.begin(), stages.end());
  if (std::adjacent_find(stages.begin(), stages.end()) != stages.end()) {
    refuse(request, "an epilogue stage stands twice", "each of bias, add, relu and clip may stand once");
  }
  if (request.user_code && !request.epilogue.empty()) {
    refuse(request, "an epilogue is either stages or user code", "write the stages into the expression");
  }
  if (request.arithmetic != Arithmetic{} && !operation.has_arithmetic()) {
    refuse(request, "it has no choice of arithmetic", "leave out tf32, fast and deterministic");
  }
  if (request.constant_weights && !operation.has_weights()) {
    refuse(request, "it has no weights", "leave out constant_weights");
  }
}

// Sorts into the operation's order and adds the defaults of attributes.
void complete_attributes(Request& request, const Operation& operation) {
  std::vector<Attribute> ordered;
  for (const AttributeDefinition& definition : operation.attributes()) {
    const auto given = std::find_if(request.attributes.begin(), request.attributes.end(),
                                    [&](const Attribute& attribute) { return attribute.name == definition.name; });
    ordered.push_back(given == request.attributes.end() ? Attribute{definition.name, definition.fallback} : *given);
  }
  request.attributes = std::move(ordered);
  operation.complete_attributes(request);
}

void check_words(const Request& request, const Operation& operation) {
  for (size_t i = 0; i < request.attributes.size(); ++i) {
    const AttributeDefinition& definition = operation.attributes()[i];
    const Attribute& attribute = request.attributes[i];
    if (attribute.value.index() != definition.fallback.index()) {
      refuse(request, fmt::format("attribute {} has a value of the wrong kind", attribute.name),
             definition.words.empty() ? "it takes integers" : "it takes a word");
    }
    const auto* word = std::get_if<std::string>(&attribute.value);
    if (word == nullptr) continue;
    if (std::find(definition.words.begin(), definition.words.end(), *word) == definition.words.end()) {
      const std::vector<std::string_view> known(definition.words.begin(), definition.words.end());
      refuse(request, fmt::format("{}={} is unknown", attribute.name, *word),
             kind_given_at_call(operation, attribute.name).empty()
                 ? did_you_mean(*word, known, fmt::format("known are {}", fmt::join(known, ", ")))
                 : hint_of_class(attribute.name));
    }
  }
}

void complete_operands(Request& request, const Operation& operation) {
  std::vector<Operand> ordered;
  for (const OperandDefinition& definition : operation.operands()) {
    const TensorSpec* given = request.find(definition.name);
    std::optional<TensorSpec> spec;
    if (given != nullptr) spec = *given;
    if (!spec || spec->extents.empty()) {
      const std::optional<TensorSpec> implied = operation.implied_operand(request, definition.name);
      if (!implied && definition.printing == Printing::always) {
        refuse(request, fmt::format("operand {} is missing", definition.name),
               fmt::format("add {}=dtype:extents:layout", definition.name));
      }
      if (implied && spec && !spec->strides.empty()) refuse(request, "a tensor without extents has strides", "");
      spec = implied;
    }
    if (spec) ordered.push_back({definition.name, *spec});
    if (spec && !names(request.operands, definition.name)) request.operands.push_back({definition.name, *spec});
  }
  const size_t own = ordered.size();
  for (const Operand& operand : request.operands) {
    if (is_user_operand(operand.name)) ordered.push_back(operand);
  }
  std::sort(ordered.begin() + static_cast<ptrdiff_t>(own), ordered.end(),
            [](const Operand& a, const Operand& b) { return a.name < b.name; });
  request.operands = std::move(ordered);
}

// Throws unless a tensor that somebody filled in has a dtype, a rank and extents that other checks can rely on.
void check_shape(const Request& request, const Operand& operand) {
  const TensorSpec& spec = operand.spec;
  const auto fail = [&](const std::string& what, const std::string& hint) {
    refuse(request, fmt::format("{} {}", operand.name, what), hint);
  };
  if (!is_dtype(spec.dtype)) {
    fail(fmt::format("has dtype {}, which there is not", static_cast<int>(spec.dtype)), "give one of kiln::DType");
  }
  const int most = kiln::operation(request.operation).most_dimensions();
  if (spec.rank() < 1 || spec.rank() > most) {
    fail(fmt::format("has {} dimensions", spec.rank()),
         fmt::format("tensors of {} have 1 to {}", request.operation, most));
  }
  if (spec.strides.size() != spec.extents.size()) {
    fail(fmt::format("has {} strides for {} extents", spec.strides.size(), spec.extents.size()),
         "give one stride a dimension");
  }
  for (int64_t extent : spec.extents) {
    if (extent < 0) fail(fmt::format("has the negative extent {}", extent), "extents are 0 or more");
  }
  for (int64_t stride : spec.strides) {
    if (stride < 0) fail(fmt::format("has the negative stride {}", stride), "strides are 0 or more elements");
  }
  (void)spec.elements();  // throws for sizes beyond what offsets can hold
  (void)spec.span();
}

void check_operand(const Request& request, const std::string& name, const TensorSpec& spec, DTypes dtypes) {
  const auto fail = [&](const std::string& what, const std::string& hint) {
    refuse(request, fmt::format("{} {}", name, what), hint);
  };
  if (!dtypes.holds(spec.dtype)) {
    fail(fmt::format("is {}", to_string(spec.dtype)), fmt::format("it may be {}", to_string(dtypes)));
  }
  const bool power_of_two = spec.alignment > 0 && (spec.alignment & (spec.alignment - 1)) == 0;
  if (!power_of_two || spec.alignment < size_of(spec.dtype)) {
    fail(fmt::format("has alignment {}", spec.alignment),
         fmt::format("place it at a multiple of {} bytes, the size of an element", size_of(spec.dtype)));
  }
  (void)spec.elements();  // throws for sizes beyond what offsets can hold
  (void)spec.span();
}

// An output whose elements share memory has no meaning. Dimensions sorted by stride must nest.
void check_no_overlap(const Request& request, const OperandDefinition& definition, const TensorSpec& spec) {
  if (definition.role == Role::input || spec.elements() == 0) return;
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, extent
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    if (spec.extents[i] > 1) dimensions.emplace_back(spec.strides[i], spec.extents[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t reach = 0;  // offset of the last element of the dimensions so far
  for (const auto& [stride, extent] : dimensions) {
    if (stride <= reach) {
      refuse(request, fmt::format("elements of output {} share memory ({})", definition.name, spec.print()),
             "an output's stride must exceed the reach of the dimensions inside it");
    }
    reach += (extent - 1) * stride;
  }
}

// The operands whose dimension 0 is the batch, as far as they are there: those of the operation first.
std::vector<Operand*> batched_operands(Request& request, const Operation& operation) {
  std::vector<Operand*> batched;
  for (const OperandDefinition& definition : operation.operands()) {
    if (!definition.batched) continue;
    for (Operand& operand : request.operands) {
      if (operand.name != definition.name || operand.spec.extents.empty()) continue;
      if (!definition.repeats || operand.spec.extents.front() != 1) batched.push_back(&operand);
    }
  }
  for (Operand& operand : request.operands) {
    if (has_images(request, operand)) batched.push_back(&operand);
  }
  return batched;
}

// The largest batch with which the elements of `spec` have memory of their own as they do now. Where the batch lies
// inside other dimensions, these leave no more room. Any number where elements share memory already.
int64_t room_for_batch(const TensorSpec& spec) {
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  const int64_t step = spec.strides.front();
  if (step == 0) return any;
  std::vector<std::pair<int64_t, int64_t>> others;  // stride, extent
  for (size_t i = 1; i < spec.extents.size(); ++i) {
    if (spec.extents[i] > 1 && spec.strides[i] > 0) others.emplace_back(spec.strides[i], spec.extents[i]);
  }
  std::sort(others.begin(), others.end());
  int64_t room = any, reach = 0;  // offset of the last element of the dimensions so far, without the batch
  for (const auto& [stride, extent] : others) {
    if (stride >= step) room = std::min(room, std::max<int64_t>((stride - 1 - reach) / step + 1, 1));
    reach += (extent - 1) * stride;
  }
  return room < spec.extents.front() ? any : room;
}

// One run-time value is the batch of all operands. Rounding to the top of its bucket would hide that they differ.
// Tensors of user code set no limit: they may share memory.
void round_batch_to_bucket(Request& request, const Operation& operation) {
  if (!request.dynamic_batch) return;
  const std::vector<Operand*> batched = batched_operands(request, operation);
  for (const Operand* operand : batched) {
    if (operand->spec.extents.front() == batched.front()->spec.extents.front()) continue;
    refuse(request,
           fmt::format("{} has batch {}, expected {} as in {}", operand->name, operand->spec.extents.front(),
                       batched.front()->spec.extents.front(), batched.front()->name),
           "with n=? too, all operands of a request have one batch");
  }
  if (batched.empty()) return;
  int64_t top = batch_bucket(batched.front()->spec.extents.front());
  for (const Operand* operand : batched) {
    if (!is_user_operand(operand->name)) top = std::min(top, room_for_batch(operand->spec));
  }
  for (Operand* operand : batched) {
    operand->spec.extents.front() = top;
    operand->spec.canonicalise();
  }
}

void check_batch_invariant(const Request& request) {
  if (!request.batch_invariant) return;
  const Operation& definition = operation(request.operation);
  if (const auto why = definition.why_images_mix(request)) {
    refuse(request, fmt::format("it cannot be batch_invariant: {}", *why), "leave out batch_invariant");
  }
  if (!definition.has_order_of_sums()) {
    refuse(request,
           definition.adds_in_any_order() ? "it cannot be batch_invariant: its kernels keep no order of sums"
                                          : "it adds nothing, so no order of sums could depend on the batch",
           "leave out batch_invariant");
  }
  if (const auto why = why_batch_is_inside(request)) {
    refuse(request, fmt::format("it cannot be batch_invariant: {}", *why),
           "leave out batch_invariant, or put the batch in front of all other dimensions in memory");
  }
}

void drop_sugar(Request& request, const Operation& operation) {
  std::vector<Attribute> kept;
  for (size_t i = 0; i < request.attributes.size(); ++i) {
    if (operation.attributes()[i].printing != Printing::never) kept.push_back(request.attributes[i]);
  }
  request.attributes = std::move(kept);
}

}  // namespace

Request finished(Request request) {
  const Operation& definition = operation(request.operation);
  check_names(request, definition);
  check_epilogue(request, definition);
  check_blend(request, definition);
  for (const Operand& operand : request.operands) {
    if (!operand.spec.extents.empty()) check_shape(request, operand);  // those without are completed
  }
  round_batch_to_bucket(request, definition);
  for (Operand& operand : request.operands) operand.spec.canonicalise();
  complete_attributes(request, definition);
  check_words(request, definition);
  complete_operands(request, definition);
  for (const OperandDefinition& operand : definition.operands()) {
    if (const TensorSpec* spec = request.find(operand.name)) {
      check_operand(request, operand.name, *spec, operand.dtypes);
      check_no_overlap(request, operand, *spec);
    }
  }
  definition.validate(request);
  check_user_names(request);
  for (const Operand& operand : request.operands) {
    if (!is_user_operand(operand.name)) continue;
    check_operand(request, operand.name, operand.spec, DTypes::any);
    check_user_operand(request, operand);
  }
  check_further_blends(request);
  check_batch_invariant(request);
  drop_sugar(request, definition);
  return request;
}

}  // namespace kiln
