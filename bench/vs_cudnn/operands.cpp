#include "operands.h"

#include <algorithm>
#include <cmath>

#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"

namespace kiln::bench {
namespace {

constexpr uint64_t seed = 1;
constexpr size_t most_sets = 512;  // a graph of 512 kernels is replayed without a pause

// Two on the emulated device, whose L2 keeps nothing for a launch but what the one before it stored.
size_t set_count(const device::DeviceInfo& info, double bytes) {
  if (info.emulated) return 2;
  const double wanted = std::ceil(3 * static_cast<double>(info.l2_bytes) / bytes);
  const double room = static_cast<double>(info.memory_bytes) / 4 / bytes;
  return std::clamp(static_cast<size_t>(std::min(wanted, room)), size_t{2}, most_sets);
}

}  // namespace

OperandSets::OperandSets(std::shared_ptr<const device::ContextHandle> context, const Request& request)
    : context_(std::move(context)) {
  double bytes = 0;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const Operand& operand = request.operands[i];
    const bool is_output = &operand == &result_of(request);
    if (is_output) output_ = i;
    contents_.push_back(is_output ? reference::poisoned(operand.spec)
                                  : reference::filled(operand.spec, reference::Values::uniform, seed + i));
    bytes += static_cast<double>(contents_.back().size());
  }
  sets_.resize(set_count(context_->device().info(), std::max(bytes, 1.0)));
  for (std::vector<device::Buffer>& set : sets_) {
    for (const std::vector<std::byte>& memory : contents_) {
      const device::Buffer* first = &set == sets_.data() ? nullptr : &sets_[0][set.size()];
      set.emplace_back(context_, memory.size());
      if (first == nullptr) {
        device::copy_to_device(*context_, set.back().address(), memory.data(), memory.size());
      } else {
        device::copy_on_device(*context_, set.back().address(), first->address(), memory.size(), nullptr);
      }
    }
  }
  context_->synchronize();
}

std::vector<cuda_abi::CUdeviceptr> OperandSets::addresses(size_t set) const {
  std::vector<cuda_abi::CUdeviceptr> all;
  for (const device::Buffer& buffer : sets_[set]) all.push_back(buffer.address());
  return all;
}

void OperandSets::poison(size_t set, cuda_abi::CUstream stream) const {
  device::fill_bytes(*context_, address(set, output_), 0xff, contents_[output_].size(), stream);
}

std::vector<std::byte> OperandSets::output(size_t set, size_t begin, size_t bytes) const {
  return device::download<std::byte>(*context_, address(set, output_) + begin, bytes);
}

}  // namespace kiln::bench
