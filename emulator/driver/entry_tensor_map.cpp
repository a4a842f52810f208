// Tensor maps: what copies of boxes of a tensor need to know of it.
#include <array>
#include <cstring>
#include <optional>

#include "driver.h"
#include "driver/exports.h"
#include "kernel/tensor_map.h"
#include "model/device_table.h"

namespace kiln::emulator {
namespace {

/// Bytes of an element. Fails the call for those that copies change on their way, which is not supported.
uint8_t element_bytes(CUtensorMapDataType type) {
  constexpr std::array<uint8_t, 10> plain = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  constexpr int types = 16;  // also those that are flushed or rounded (f32, tf32) and packed (4 and 6 bits)
  require(type >= 0 && type < types);
  require(static_cast<size_t>(type) < plain.size(), CUDA_ERROR_NOT_SUPPORTED);
  return plain[static_cast<size_t>(type)];
}

uint8_t swizzle_bytes(CUtensorMapSwizzle swizzle) {
  constexpr std::array<uint8_t, 4> bytes = {0, 32, 64, 128};
  constexpr int swizzles = 7;  // also those of larger pieces
  require(swizzle >= 0 && swizzle < swizzles);
  require(static_cast<size_t>(swizzle) < bytes.size(), CUDA_ERROR_NOT_SUPPORTED);
  return bytes[static_cast<size_t>(swizzle)];
}

bool is_floating(CUtensorMapDataType type) {
  constexpr int float64 = 8;
  return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || type == float64 ||
         type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/// Requires valid values of the arguments that are no extents. `address`: of the tensor.
void require_known_modes(CUtensorMapDataType type, unsigned rank, uint64_t address, CUtensorMapInterleave interleave,
                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  constexpr int interleaves = 3, promotions = 4, fills = 2;
  require(interleave >= 0 && interleave < interleaves);
  require(promotion >= 0 && promotion < promotions);
  require(fill >= 0 && fill < fills && (fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_floating(type)));
  const bool interleaved = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  require(address % (interleave == interleaves - 1 ? 32 : 16) == 0 && (!interleaved || rank >= 3));
  require(!interleaved && fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): the driver API's parameters
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, void* address,
                                const uint64_t* extents, const uint64_t* byte_strides, const unsigned* box,
                                const unsigned* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return entry([&] {
    const std::shared_ptr<Context> context = current_context();
    require(context->device().model.limits.major >= first_major_with_tensor_maps, CUDA_ERROR_NOT_SUPPORTED);
    require(map != nullptr && reinterpret_cast<uintptr_t>(map) % tensor_map_alignment == 0);
    require(rank >= 1 && rank <= TensorMap::max_rank && address != nullptr);
    require(extents != nullptr && box != nullptr && element_strides != nullptr);
    require(rank == 1 || byte_strides != nullptr);
    TensorMap encoded;
    encoded.mark = TensorMap::written;
    encoded.address = reinterpret_cast<uintptr_t>(address);
    encoded.rank = static_cast<uint8_t>(rank);
    encoded.element_bytes = element_bytes(type);
    encoded.swizzle_bytes = swizzle_bytes(swizzle);
    require_known_modes(type, rank, encoded.address, interleave, promotion, fill);
    bool dense = true;
    for (unsigned d = 0; d < rank; ++d) {
      require(extents[d] >= 1 && extents[d] <= uint64_t{1} << 32 && box[d] >= 1 && box[d] <= 256);
      const uint64_t stride = d == 0 ? encoded.element_bytes : byte_strides[d - 1];
      require(d == 0 || (stride % 16 == 0 && stride < uint64_t{1} << 40));
      require(element_strides[d] >= 1 && element_strides[d] <= 8);
      dense = dense && (d == 0 || element_strides[d] == 1);  // "the first element of this array is ignored"
      encoded.last[d] = static_cast<uint32_t>(extents[d] - 1);
      encoded.byte_stride[d] = stride;
      encoded.box[d] = static_cast<uint16_t>(box[d]);
    }
    require(dense, CUDA_ERROR_NOT_SUPPORTED);
    const unsigned inner = box[0] * encoded.element_bytes;
    require(inner % 16 == 0 && (encoded.swizzle_bytes == 0 || inner <= encoded.swizzle_bytes));
    // How shorter rows lie in shared memory is not documented.
    require(encoded.swizzle_bytes == 0 || inner == encoded.swizzle_bytes, CUDA_ERROR_NOT_SUPPORTED);
    std::memset(map, 0, tensor_map_bytes);
    std::memcpy(map, &encoded, sizeof encoded);
  });
}

}  // namespace kiln::emulator
