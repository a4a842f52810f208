#include "kiln/checking/device_operands.h"

#include <utility>

#include "kiln/device/memory.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::checking {
namespace {

RunValues values_for(const Request& request) {
  RunValues values = check_values(request);
  if (request.blend.alpha == Scale::any) values.alpha = 0.75F;
  if (request.blend.beta == Scale::any) values.beta = -0.5F;
  if (request.has(EpilogueStage::clip)) {
    values.clip_lo = -0.625F;
    values.clip_hi = 0.875F;
  }
  values.scalars = {0.5F, 1.25F, -0.375F, 2.0F, 0.75F, -1.5F, 0.125F, 3.0F};
  return values;
}

}  // namespace

Checkable::Checkable(const execution::Executable& variant)
    : run([&variant](cuda_abi::CUstream stream, Operands operands, const RunValues& values, int64_t n,
                     cuda_abi::CUdeviceptr workspace) { variant.run(stream, operands, values, n, workspace); }),
      workspace_bytes(variant.workspace_bytes()),
      prepare([&variant](cuda_abi::CUstream stream, Operands operands, cuda_abi::CUdeviceptr workspace) {
        variant.prepare(stream, operands, workspace);
      }),
      run_prepared([&variant](cuda_abi::CUstream stream, Operands operands, const RunValues& values, int64_t n,
                              cuda_abi::CUdeviceptr workspace) {
        const auto rest = workspace + static_cast<uint64_t>(variant.preparation().bytes);
        variant.run_prepared(stream, operands, values, n, workspace, rest);
      }) {}

std::vector<Memory> contents_of(const Request& request, reference::Values values, uint64_t seed) {
  std::vector<Memory> contents;
  for (const Operand& operand : request.operands) {
    contents.push_back(is_read(request, operand.name)
                           ? reference::filled(request, operand, values, seed + contents.size())
                           : reference::poisoned(operand.spec));
  }
  return contents;
}

DeviceOperands::DeviceOperands(std::shared_ptr<const device::ContextHandle> context, Request request,
                               Placement placement)
    : context_(std::move(context)), request_(std::move(request)), values_(values_for(request_)) {
  for (const auto& [name, spec] : request_.operands) {
    const auto bytes = static_cast<size_t>(reference::byte_span(spec));
    all_.push_back({name, spec, GuardedBuffer(context_, bytes, static_cast<size_t>(spec.alignment)),
                    is_written(request_, name), request_.dynamic_batch && is_batched(request_, name)});
  }
  place(placement);
}

void DeviceOperands::place(Placement placement) {
  for (One& one : all_) {
    one.device.place(one.spec.alignment < default_alignment ? Placement::aligned_no_better : placement);
  }
}

void DeviceOperands::upload(const std::vector<Memory>& contents, bool inputs, cuda_abi::CUstream stream) {
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].is_written && !inputs) continue;
    device::copy_to_device(*context_, all_[i].device.address(), contents[i].data(), contents[i].size(), stream);
    if (inputs) all_[i].device.arm(stream);
  }
}

std::vector<cuda_abi::CUdeviceptr> DeviceOperands::addresses() const {
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (const One& one : all_) addresses.push_back(one.device.address());
  return addresses;
}

void DeviceOperands::prepare(const Checkable& variant, cuda_abi::CUdeviceptr workspace,
                             cuda_abi::CUstream stream) const {
  if (request_.constant_weights) variant.prepare(stream, addresses(), workspace);
}

void DeviceOperands::run(const Checkable& variant, int64_t n, cuda_abi::CUdeviceptr workspace,
                         cuda_abi::CUstream stream) const {
  (request_.constant_weights ? variant.run_prepared : variant.run)(stream, addresses(), values_, n, workspace);
}

}  // namespace kiln::checking
