#include "comparison_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comparison.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::bench {
namespace {

constexpr int64_t sampled_outputs = 500;
constexpr uint64_t seed = 1;

}  // namespace

KilnSide::KilnSide(const std::shared_ptr<const device::ContextHandle>& device, const Plan& plan,
                   const OperandSets& operands)
    : plan_(plan), workspace_(device, static_cast<size_t>(plan_.workspace_bytes())) {
  for (size_t set = 0; set < operands.count(); ++set) {
    std::vector<Address>& addresses = addresses_.emplace_back();
    for (size_t i = 0; i < plan_.request().operands.size(); ++i) {
      addresses.emplace_back(reinterpret_cast<const void*>(operands.address(set, i)));
    }
  }
}

void KilnSide::run(cuda_abi::CUstream stream, size_t set) const {
  RunValues values;
  values.clip_lo = clip_lo;
  values.clip_hi = clip_hi;
  plan_.run(stream, addresses_[set], reinterpret_cast<void*>(workspace_.address()), values);
}

WorkspaceTooLarge::WorkspaceTooLarge(int64_t bytes)
    : Error(ErrorCode::unsupported, fmt::format("it asks for {} bytes of workspace", bytes)) {}

GraphSide::GraphSide(const std::shared_ptr<const device::ContextHandle>& device, const CudnnHandle& handle,
                     std::shared_ptr<const void> owner, std::vector<GraphStep> steps, int64_t workspace_limit,
                     const OperandSets& operands)
    : handle_(handle), owner_(std::move(owner)), steps_(std::move(steps)) {
  for (const GraphStep& step : steps_) workspace_bytes_ = std::max(workspace_bytes_, step.plan.workspace_bytes());
  if (workspace_bytes_ > workspace_limit) throw WorkspaceTooLarge(workspace_bytes_);
  workspace_ = device::Buffer(device, static_cast<size_t>(workspace_bytes_));
  for (size_t set = 0; set < operands.count(); ++set) {
    std::vector<VariantPack>& packs = packs_.emplace_back();
    for (const GraphStep& step : steps_) {
      packs.emplace_back(handle.library(), step.bound, operands.addresses(set), workspace_.address());
    }
  }
}

void GraphSide::run(size_t set) const {
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].plan.execute(handle_, packs_[set][i]);
}

OutputJudge::OutputJudge(const Request& request, const OperandSets& operands) : spec_(result_of(request).spec) {
  reference::Bindings bindings;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    bindings.operands[request.operands[i].name] = operands.contents(i);
  }
  bindings.values.clip_lo = clip_lo;
  bindings.values.clip_hi = clip_hi;
  const reference::Oracle oracle(request, bindings);
  coordinates_ = reference::sample_coordinates(spec_, sampled_outputs, seed);
  for (const reference::Expected& expected : oracle.at_each(coordinates_)) expected_.push_back(expected.value);
}

double OutputJudge::error_of(const OperandSets& operands, const device::Stream& stream,
                             const std::function<void()>& run) const {
  operands.poison(0, stream.raw());
  run();
  stream.synchronize();
  const auto size = static_cast<size_t>(size_of(spec_.dtype));
  std::vector<double> got;
  for (const auto& coordinate : coordinates_) {
    const auto at = static_cast<size_t>(reference::offset_of(spec_, coordinate)) * size;
    got.push_back(reference::load(spec_.dtype, operands.output(0, at, size).data()));
  }
  return relative_error(got, expected_);
}

double OutputJudge::difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const {
  return relative_error(reference::read_all(spec_, a), reference::read_all(spec_, b));
}

}  // namespace kiln::bench
