// Tensor maps through the driver API: what can be encoded, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_tensor_map_test {
namespace {

/// A matrix of 100 x 64 f16 of which boxes of 16 x 32 are copied; each test changes something of it.
struct Description {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  unsigned rank = 2;
  void* address = reinterpret_cast<void*>(uintptr_t{1} << 20);
  uint64_t extents[5] = {64, 100, 3, 4, 5};
  uint64_t byte_strides[4] = {128, 12800, 38400, 153600};
  unsigned box[5] = {32, 16, 1, 1, 1};
  unsigned element_strides[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

CUresult encode(const Emulator& cuda, const Description& d, CUtensorMap* map) {
  return cuda.cuTensorMapEncodeTiled(map, d.type, d.rank, d.address, d.extents, d.byte_strides, d.box,
                                     d.element_strides, d.interleave, d.swizzle, d.promotion, d.fill);
}

class DriverTensorMap : public DriverTest {
 protected:
  CUresult with(const std::function<void(Description&)>& change) {
    Description description;
    change(description);
    CUtensorMap map;
    return encode(cuda, description, &map);
  }
};

TEST_F(DriverTensorMap, EqualDescriptionsGiveEqualBytesAndOthersDoNot) {
  CUtensorMap first, second;
  std::memset(&first, 1, sizeof first);
  std::memset(&second, 2, sizeof second);
  Description description;
  EXPECT_EQ(encode(cuda, description, &first), CUDA_SUCCESS);
  EXPECT_EQ(encode(cuda, description, &second), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
  description.extents[1] = 101;
  EXPECT_EQ(encode(cuda, description, &second), CUDA_SUCCESS);
  EXPECT_NE(std::memcmp(&first, &second, sizeof first), 0);
}

TEST_F(DriverTensorMap, TakesWhatTheReferenceAllows) {
  for (unsigned rank = 1; rank <= 5; ++rank) EXPECT_EQ(with([&](auto& d) { d.rank = rank; }), CUDA_SUCCESS) << rank;
  EXPECT_EQ(with([](auto& d) { d.extents[1] = uint64_t{1} << 32; }), CUDA_SUCCESS);
  EXPECT_EQ(with([](auto& d) { d.byte_strides[0] = (uint64_t{1} << 40) - 16; }), CUDA_SUCCESS);
  EXPECT_EQ(with([](auto& d) { d.box[1] = 256; }), CUDA_SUCCESS);
  EXPECT_EQ(with([](auto& d) { d.element_strides[0] = 8; }), CUDA_SUCCESS) << "the first is ignored";
  for (int promotion = 0; promotion < 4; ++promotion) {
    EXPECT_EQ(with([&](auto& d) { d.promotion = static_cast<CUtensorMapL2promotion>(promotion); }), CUDA_SUCCESS);
  }
  const unsigned in_128_bytes[] = {128, 64, 32, 32, 16, 16, 64, 32, 16, 64};
  for (int type = 0; type < 10; ++type) {
    const auto typed = [&](auto& d) {
      d.type = static_cast<CUtensorMapDataType>(type);
      d.box[0] = in_128_bytes[type];
      d.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    };
    EXPECT_EQ(with(typed), CUDA_SUCCESS) << type;
  }
}

TEST_F(DriverTensorMap, RefusesWhatTheReferenceForbids) {
  const struct {
    const char* what;
    std::function<void(Description&)> change;
  } cases[] = {
      {"rank 0", [](auto& d) { d.rank = 0; }},
      {"rank 6", [](auto& d) { d.rank = 6; }},
      {"null", [](auto& d) { d.address = nullptr; }},
      {"address", [](auto& d) { d.address = reinterpret_cast<void*>((uintptr_t{1} << 20) + 8); }},
      {"extent 0", [](auto& d) { d.extents[1] = 0; }},
      {"extent", [](auto& d) { d.extents[0] = (uint64_t{1} << 32) + 1; }},
      {"stride", [](auto& d) { d.byte_strides[0] = 136; }},
      {"large stride", [](auto& d) { d.byte_strides[0] = uint64_t{1} << 40; }},
      {"last stride", [](auto& d) { d.rank = 5, d.byte_strides[3] = 8; }},
      {"box 0", [](auto& d) { d.box[1] = 0; }},
      {"box", [](auto& d) { d.box[1] = 257; }},
      {"inner box of 8 bytes", [](auto& d) { d.box[0] = 4; }},
      {"inner box of 128 bytes in a swizzle of 64", [](auto& d) { d.box[0] = 64; }},
      {"element stride 0", [](auto& d) { d.element_strides[1] = 0; }},
      {"element stride 9", [](auto& d) { d.element_strides[1] = 9; }},
      {"swizzle", [](auto& d) { d.swizzle = static_cast<CUtensorMapSwizzle>(7); }},
      {"promotion", [](auto& d) { d.promotion = static_cast<CUtensorMapL2promotion>(4); }},
      {"fill", [](auto& d) { d.fill = static_cast<CUtensorMapFloatOOBfill>(2); }},
      {"NaN among integers",
       [](auto& d) {
         d.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
         d.box[0] = 16;
         d.fill = static_cast<CUtensorMapFloatOOBfill>(1);
       }},
      {"interleave", [](auto& d) { d.interleave = static_cast<CUtensorMapInterleave>(3); }},
      {"interleave of a matrix", [](auto& d) { d.interleave = static_cast<CUtensorMapInterleave>(1); }},
      {"type", [](auto& d) { d.type = static_cast<CUtensorMapDataType>(16); }},
  };
  for (const auto& one : cases) EXPECT_EQ(with(one.change), CUDA_ERROR_INVALID_VALUE) << one.what;
  alignas(128) std::byte bytes[256];
  EXPECT_EQ(encode(cuda, {}, reinterpret_cast<CUtensorMap*>(bytes + 32)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(cuda, {}, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTensorMap, SaysWhatIsNotSupportedHere) {
  EXPECT_EQ(with([](auto& d) { d.element_strides[1] = 2; }), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(with([](auto& d) { d.swizzle = static_cast<CUtensorMapSwizzle>(4); }), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(with([](auto& d) { d.swizzle = CU_TENSOR_MAP_SWIZZLE_128B; }), CUDA_ERROR_NOT_SUPPORTED)
      << "rows of 64 bytes in a span of 128";
  EXPECT_EQ(with([](auto& d) { d.fill = static_cast<CUtensorMapFloatOOBfill>(1); }), CUDA_ERROR_NOT_SUPPORTED);
  const auto interleaved = [](auto& d) { d.rank = 3, d.interleave = static_cast<CUtensorMapInterleave>(1); };
  EXPECT_EQ(with(interleaved), CUDA_ERROR_NOT_SUPPORTED);
  for (const int type : {10, 11, 12, 13, 14, 15}) {
    EXPECT_EQ(with([&](auto& d) { d.type = static_cast<CUtensorMapDataType>(type); }), CUDA_ERROR_NOT_SUPPORTED);
  }
}

TEST(DriverTensorMapDevices, OlderOnesHaveNone) {
  const Emulator cuda(Variables{{"KILN_EMULATOR_DEVICE", "a100"}});
  CUtensorMap map;
  EXPECT_EQ(encode(cuda, {}, &map), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_EQ(encode(cuda, {}, &map), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_tensor_map_test
