#include "tensor_map_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::execution {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the driver's manual

constexpr CUdeviceptr alignment = 16;
constexpr std::string_view call = "cuTensorMapEncodeTiled";

CUtensorMapDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::i8:  // copies move bits
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

CUtensorMapSwizzle swizzle_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case Swizzle::bytes_32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::bytes_64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes_128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

}  // namespace

TensorMapSlot::TensorMapSlot(const device::Driver& driver, TensorMapArgument argument)
    : driver_(driver), argument_(std::move(argument)) {
  (void)driver.optional_call(driver.calls().cuTensorMapEncodeTiled, call);
}

void TensorMapSlot::get(CUdeviceptr address, int64_t n, CUtensorMap& map) const {
  if (address == 0) {
    map = {};
    return;
  }
  if (busy_.test_and_set(std::memory_order_acquire)) return encode(address, n, map);
  struct Release {
    std::atomic_flag& flag;
    ~Release() { flag.clear(std::memory_order_release); }
  } const release{busy_};
  if (address != latest_address_ || n != latest_n_) {
    latest_address_ = 0;  // should it be refused
    encode(address, n, latest_);
    latest_address_ = address;
    latest_n_ = n;
  }
  map = latest_;
}

void TensorMapSlot::encode(CUdeviceptr address, int64_t n, CUtensorMap& map) const {
  if (address % alignment != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a kernel reads memory at {:#x} by a tensor map, which needs multiples of {} bytes",
                            address, alignment),
                fmt::format("align it, or ask for a plan whose request says how it is aligned (NAME=...@{})",
                            address & -address));
  }
  const size_t rank = argument_.extents.size();
  std::array<uint64_t, TensorMapArgument::max_rank> extents{}, strides{};
  std::array<unsigned, TensorMapArgument::max_rank> steps{};
  for (size_t i = 0; i < rank; ++i) extents[i] = static_cast<uint64_t>(argument_.extents[i].at(n));
  std::copy(argument_.byte_strides.begin(), argument_.byte_strides.end(), strides.begin());
  steps.fill(1);
  const CUresult result = driver_.calls().cuTensorMapEncodeTiled(
      &map, type_of(argument_.dtype), static_cast<unsigned>(rank), reinterpret_cast<void*>(address), extents.data(),
      strides.data(), argument_.box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(argument_.swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) driver_.fail(result, call, fmt::format("{} at {:#x}", describe(argument_), address));
}

}  // namespace kiln::execution
