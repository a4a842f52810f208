// Tensor maps in the emulated device's own form: programs pass the 128 bytes on without looking into them.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace kiln::emulator {

inline constexpr uint32_t tensor_map_bytes = 128, tensor_map_alignment = 64;

/// A tensor in global memory, and the box of it that one copy moves. Dimension 0 is the innermost one, whose elements
/// stand side by side.
struct TensorMap {
  static constexpr uint32_t max_rank = 5;
  static constexpr uint64_t written = 0x50414d524f534e54;  // "TNSORMAP"

  uint64_t mark = 0;  ///< `written`, unless these bytes are something else
  uint64_t address = 0;
  std::array<uint64_t, max_rank> byte_stride{};  ///< from one index to the next
  std::array<uint32_t, max_rank> last{};         ///< index: the extent, up to 2^32, less one
  std::array<uint16_t, max_rank> box{};          ///< elements
  uint8_t rank = 0;
  uint8_t element_bytes = 0;
  uint8_t swizzle_bytes = 0;  ///< the span in which 16-byte pieces change places: 32, 64, 128; 0: none do

  /// Bytes that the box takes in shared memory.
  uint64_t box_bytes() const {
    uint64_t bytes = element_bytes;
    for (uint32_t d = 0; d < rank; ++d) bytes *= box[d];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) <= tensor_map_bytes && std::is_trivially_copyable_v<TensorMap>);

}  // namespace kiln::emulator
