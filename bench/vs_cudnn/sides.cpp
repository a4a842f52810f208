#include "sides.h"

#include <fmt/format.h>

#include <utility>

#include "comparison.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::bench {
namespace {

constexpr int64_t sampled_outputs = 500;
constexpr uint64_t seed = 1;

// Operands of a convolution without epilogue, in a request's order.
constexpr size_t x = 0, w = 1, y = 2;

}  // namespace

KilnSide::KilnSide(const std::shared_ptr<const device::ContextHandle>& device, Plan plan, const OperandSets& operands)
    : plan_(std::move(plan)), workspace_(device, static_cast<size_t>(plan_.workspace_bytes())) {
  for (size_t set = 0; set < operands.count(); ++set) {
    std::vector<Address>& addresses = addresses_.emplace_back();
    for (size_t i = 0; i < plan_.request().operands.size(); ++i) {
      addresses.emplace_back(reinterpret_cast<const void*>(operands.address(set, i)));
    }
  }
}

void KilnSide::run(cuda_abi::CUstream stream, size_t set) const {
  plan_.run(stream, addresses_[set], reinterpret_cast<void*>(workspace_.address()));
}

WorkspaceTooLarge::WorkspaceTooLarge(int64_t bytes)
    : Error(ErrorCode::unsupported, fmt::format("it asks for {} bytes of workspace", bytes)) {}

CudnnSide::CudnnSide(const std::shared_ptr<const device::ContextHandle>& device, const CudnnHandle& handle,
                     const EngineConfig& config, int64_t workspace_limit, const OperandSets& operands)
    : plan_(handle, config) {
  if (plan_.workspace_bytes() > workspace_limit) throw WorkspaceTooLarge(plan_.workspace_bytes());
  workspace_ = device::Buffer(device, static_cast<size_t>(plan_.workspace_bytes()));
  for (size_t set = 0; set < operands.count(); ++set) {
    packs_.emplace_back(handle.library(), operands.address(set, x), operands.address(set, w), operands.address(set, y),
                        workspace_.address());
  }
}

OutputJudge::OutputJudge(const Request& request, const OperandSets& operands) : spec_(request.at("y")) {
  reference::Bindings bindings;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    bindings.operands[request.operands[i].name] = operands.contents(i);
  }
  const reference::Oracle oracle(request, bindings);
  coordinates_ = reference::sample_coordinates(spec_, sampled_outputs, seed);
  for (const auto& coordinate : coordinates_) expected_.push_back(oracle.at(coordinate).value);
}

std::vector<std::byte> OutputJudge::output_of(OperandSets& operands, const device::Stream& stream,
                                              const std::function<void()>& run) const {
  operands.poison(0);
  run();
  stream.synchronize();
  return operands.output(0);
}

double OutputJudge::error(const std::vector<std::byte>& output) const {
  std::vector<double> got;
  for (const auto& coordinate : coordinates_) got.push_back(reference::read(spec_, output, coordinate));
  return relative_error(got, expected_);
}

double OutputJudge::difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const {
  return relative_error(reference::read_all(spec_, a), reference::read_all(spec_, b));
}

}  // namespace kiln::bench
