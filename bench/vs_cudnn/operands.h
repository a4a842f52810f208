// The operands of one layer, several times over.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/generator/request.h"

namespace kiln::bench {

/// Sets of equal operands in different memory. Runs go round the sets, so that no run finds its operands in L2:
/// together they are at least three times as large as that. Both sides use the same sets.
class OperandSets {
 public:
  /// Throws DriverError(out_of_memory).
  OperandSets(std::shared_ptr<const device::ContextHandle> context, const Request& request);

  size_t count() const { return sets_.size(); }
  /// Address of operand `operand` of the request, in set `set`.
  cuda_abi::CUdeviceptr address(size_t set, size_t operand) const { return sets_[set][operand].address(); }
  /// Addresses of all operands of the request, in set `set`.
  std::vector<cuda_abi::CUdeviceptr> addresses(size_t set) const;
  /// Contents of an operand before the layer runs; inputs keep them.
  const std::vector<std::byte>& contents(size_t operand) const { return contents_[operand]; }
  /// Fills the output of a set with NaN: what a run does not write shows.
  void poison(size_t set, cuda_abi::CUstream stream) const;
  /// The output of a set.
  std::vector<std::byte> output(size_t set) const { return output(set, 0, contents_[output_].size()); }
  /// `bytes` of it from byte `begin` on.
  std::vector<std::byte> output(size_t set, size_t begin, size_t bytes) const;

 private:
  std::shared_ptr<const device::ContextHandle> context_;
  std::vector<std::vector<std::byte>> contents_;
  std::vector<std::vector<device::Buffer>> sets_;
  size_t output_ = 0;
};

}  // namespace kiln::bench
