#include "kiln/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/scalar_rules.h"
#include "loaded_plan.h"
#include "named_numbers.h"
#include "out_of_reach.h"

namespace kiln {
namespace {

constexpr uintptr_t workspace_alignment = 256;
constexpr std::string_view prepared_memory = "the memory of prepared weights";

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::invalid_argument, what, hint);
}

// Each check of a run is a comparison; the words of a refusal are elsewhere, so that a run that is right does not carry
// their code.
inline bool is_of(Scale scale, float value) {
  return scale == Scale::any || value == (scale == Scale::one ? 1.0F : 0.0F);
}

[[noreturn]] void refuse_scale(std::string_view name, Scale scale, float value) {
  refuse(fmt::format("{} is {}, but the request says {}={}", name, value, name, scale == Scale::one ? 1 : 0),
         fmt::format("ask for a plan with {}=any", name));
}

[[noreturn]] void refuse_clip(const RunValues& values) {
  refuse(fmt::format("clip_lo is {} and clip_hi {}, an empty range", values.clip_lo, values.clip_hi),
         "give clip_lo <= clip_hi");
}

[[noreturn]] void refuse_memory(std::string_view what, const void* memory, int64_t bytes) {
  refuse(fmt::format("{} is {}", what, memory == nullptr ? "missing" : "not 256-byte aligned"),
         fmt::format("give {} bytes of device memory", bytes));
}

}  // namespace

LoadedPlan::LoadedPlan(const KeyedRequest& request_, Choice choice_, std::string source_, std::string program_,
                       execution::Executable executable_)
    : request(*request_),
      key(request_.key()),
      usual(usual_values(request)),
      choice(std::move(choice_)),
      source(std::move(source_)),
      program(std::move(program_)),
      executable(std::move(executable_)),
      clips_(request.has(EpilogueStage::clip)),
      scalar_rules_(operation(request.operation).scalar_rules(request)),
      fixed_batch_(request.batch()),
      empty_batch_is_nothing_(writes_nothing_without_batch(request)) {
  for (const Operand& operand : request.operands) {
    const TensorSpec& spec = operand.spec;
    const bool has_batch = request.dynamic_batch && is_batched(request, operand.name);
    const auto size = static_cast<uint64_t>(size_of(spec.dtype));
    OperandRule& rule = rules_.emplace_back();
    rule.misaligned = static_cast<uintptr_t>(spec.alignment) - 1;
    rule.empty = spec.elements() == 0;
    rule.empty_at_0 = rule.empty || has_batch;
    rule.bytes_an_image = has_batch ? static_cast<uint64_t>(spec.strides.front()) * size : 0;
    rule.bytes = static_cast<uint64_t>(spec.span()) * size - static_cast<uint64_t>(fixed_batch_) * rule.bytes_an_image;
  }
}

// Overlaps are not looked for: comparing ranges alone would cost 1.5 of some 24 ns, and regions of one tensor, whose
// ranges overlap while their elements do not, a hundred.
inline bool LoadedPlan::OperandRule::permits(uintptr_t address, int64_t n, const device::ContextHandle& context) const {
  const bool accessed = !(n == 0 ? empty_at_0 : empty);
  return (address & misaligned) == 0 && !(accessed && (address == 0 || !context.reaches(address, bytes_of(n))));
}

inline void LoadedPlan::require_memory(std::string_view what, const void* memory, int64_t bytes) const {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  if (address == 0 || address % workspace_alignment != 0) refuse_memory(what, memory, bytes);
  const device::ContextHandle& context = *executable.context();
  if (!context.reaches(address, static_cast<uint64_t>(bytes)))
    refuse_out_of_reach(std::string(what), memory, static_cast<uint64_t>(bytes), context);
}

inline int64_t LoadedPlan::batch_of(const RunValues& values) const {
  if (!request.dynamic_batch && (values.n == -1 || values.n == fixed_batch_)) return fixed_batch_;
  if (request.dynamic_batch && values.n >= 0 && values.n <= fixed_batch_) return values.n;
  refuse_batch(values.n);
}

void LoadedPlan::run(Stream stream, std::span<const Address> operands, const Memory& memory,
                     const RunValues& values) const {
  if (operands.size() != rules_.size()) refuse_operands(operands.size());
  if (!is_of(request.blend.alpha, values.alpha)) refuse_scale("alpha", request.blend.alpha, values.alpha);
  if (!is_of(request.blend.beta, values.beta)) refuse_scale("beta", request.blend.beta, values.beta);
  if (clips_ && !(values.clip_lo <= values.clip_hi)) refuse_clip(values);
  for (const ScalarRule& rule : scalar_rules_) {
    if (!is_kept(rule, values)) refuse_scalar(rule, values);
  }
  const int64_t n = batch_of(values);
  if (n == 0 && empty_batch_is_nothing_) return;
  const device::ContextHandle& context = *executable.context();
  std::array<cuda_abi::CUdeviceptr, execution::Executable::max_values> addresses;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto address = reinterpret_cast<uintptr_t>(operands[i].pointer);
    if (!rules_[i].permits(address, n, context)) refuse_operand(i, operands[i].pointer, n);
    addresses[i] = address;
  }
  const std::span<const cuda_abi::CUdeviceptr> given(addresses.data(), operands.size());
  const auto on = static_cast<cuda_abi::CUstream>(stream);
  const auto scratch = reinterpret_cast<uintptr_t>(memory.workspace);
  const int64_t prepared = memory.prepared ? executable.preparation().bytes : 0;
  require_memory("the workspace", memory.workspace, executable.workspace_bytes() - prepared);
  if (memory.prepared) require_memory(prepared_memory, *memory.prepared, prepared);
  if (numerics) numerics->look_at_operands(*this, on, given, n);
  if (memory.prepared) {
    executable.run_prepared(on, given, values, n, reinterpret_cast<uintptr_t>(*memory.prepared), scratch);
  } else {
    executable.run(on, given, values, n, scratch);
  }
  if (numerics) numerics->look_at_results(*this, on, given, n);
  if (count) count->add();
}

void LoadedPlan::prepare_weights(Stream stream, std::span<const Address> operands, void* prepared) const {
  if (operands.size() != rules_.size()) refuse_operands(operands.size());
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (size_t i = 0; i < operands.size(); ++i) {
    addresses.push_back(reinterpret_cast<uintptr_t>(operands[i].pointer));
    if (!executable.prepares(i)) continue;
    if (!rules_[i].permits(addresses[i], fixed_batch_, *executable.context()))
      refuse_operand(i, operands[i].pointer, fixed_batch_);
  }
  require_memory(prepared_memory, prepared, executable.preparation().bytes);
  executable.prepare(static_cast<cuda_abi::CUstream>(stream), addresses, reinterpret_cast<uintptr_t>(prepared));
}

void LoadedPlan::refuse_batch(int64_t n) const {
  if (!request.dynamic_batch) {
    refuse(fmt::format("n is {}, but the batch of the request is fixed to {}", n, fixed_batch_),
           "leave n out, or ask for a plan with n=?");
  }
  refuse(fmt::format("n is {}, and the request serves batches of 0 to {}", n == -1 ? "not given" : fmt::to_string(n),
                     fixed_batch_),
         "give the batch in RunValues::n, and ask for the plan of its bucket");
}

void LoadedPlan::refuse_scalar(const ScalarRule& rule, const RunValues& values) const {
  kiln::refuse_scalar(request, rule, values);
}

void LoadedPlan::refuse_operands(size_t given) const {
  std::vector<std::string_view> names;
  for (const Operand& operand : request.operands) names.push_back(operand.name);
  refuse(fmt::format("{} operands were given, expected {}", given, rules_.size()),
         fmt::format("give {}, in this order: the request is {}", fmt::join(names, ", "), key));
}

void LoadedPlan::refuse_operand(size_t i, const void* address, int64_t n) const {
  const Operand& operand = request.operands[i];
  const std::string which = fmt::format("{}: {}", request.operation, operand.name);
  if (address == nullptr) refuse(which + " is a null pointer", "give its device address");
  if ((reinterpret_cast<uintptr_t>(address) & rules_[i].misaligned) == 0)
    refuse_out_of_reach(which, address, rules_[i].bytes_of(n), *executable.context());
  const Tensor given(address, operand.spec.dtype, {1}, contiguous);
  const int size = static_cast<int>(size_of(operand.spec.dtype));
  refuse(fmt::format("{} is at {}, which is not a multiple of {} bytes", which, address, operand.spec.alignment),
         given.alignment() < size
             ? fmt::format("align it: elements of {} need multiples of {}", to_string(operand.spec.dtype), size)
             : fmt::format("align it, or ask for a plan whose request says so ({}=...@{})", operand.name,
                           given.alignment()));
}

Plan::Plan(std::shared_ptr<const LoadedPlan> loaded) : loaded_(std::move(loaded)) {
  if (!loaded_) refuse("a plan of nothing", "Context::plan() makes plans");
}

const Request& Plan::request() const {
  return loaded_->request;
}
std::vector<PlanOperand> Plan::operands() const {
  const Request& request = loaded_->request;
  std::vector<PlanOperand> operands;
  for (const Operand& operand : request.operands) {
    const bool updated = is_read(request, operand.name);
    const OperandRole written = updated ? OperandRole::updated : OperandRole::output;
    operands.push_back({.name = operand.name,
                        .role = is_written(request, operand.name) ? written : OperandRole::input,
                        .spec = operand.spec,
                        .has_batch = request.dynamic_batch && is_batched(request, operand.name)});
  }
  return operands;
}
std::string Plan::variant() const {
  return loaded_->choice.algorithm + " " + loaded_->choice.config.print();
}
const std::string& Plan::source() const {
  return loaded_->source;
}
bool Plan::is_open() const {
  return loaded_->open;
}
bool Plan::is_superseded() const {
  return loaded_->superseded.load(std::memory_order_acquire);
}
const std::string& Plan::program() const {
  return loaded_->program;
}
int64_t Plan::workspace_bytes() const {
  return loaded_->executable.workspace_bytes();
}
bool Plan::deterministic() const {
  return loaded_->executable.deterministic();
}

int64_t Plan::prepared_bytes() const {
  return loaded_->executable.preparation().bytes;
}

void Plan::run(Stream stream, std::span<const Address> operands, void* workspace, const RunValues& values) const {
  loaded_->run(stream, operands, {.workspace = workspace}, values);
}

RunValues Plan::values(std::span<const NamedScalar> numbers, std::span<const NamedInteger> integers) const {
  return NamedNumbers(operation(loaded_->request.operation), numbers, integers).over(loaded_->usual);
}
void Plan::prepare_weights(Stream stream, std::span<const Address> operands, void* prepared) const {
  loaded_->prepare_weights(stream, operands, prepared);
}
void Plan::run_prepared(Stream stream, std::span<const Address> operands, const void* prepared, void* workspace,
                        const RunValues& values) const {
  loaded_->run(stream, operands, {.workspace = workspace, .prepared = prepared}, values);
}

}  // namespace kiln
