// cp.async.bulk.tensor: boxes of tensors of every rank, wherever they lie, with every swizzle, against plain loops.
#include <functional>
#include <numeric>
#include <random>

#include "core_fixture.h"
#include "kernel/tensor_map.h"

namespace kiln::emulator::test::core_tensor_copies_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t tile_bytes = 8192;

/// A tensor map as a kernel parameter.
struct alignas(tensor_map_alignment) MapParameter {
  std::array<std::byte, tensor_map_bytes> bytes{};
  explicit MapParameter(const TensorMap& map) { std::memcpy(bytes.data(), &map, sizeof map); }
};

/// A tensor of bytes, dimension 0 innermost, in memory with `gap` bytes behind each row; the other strides follow.
struct Tensor {
  std::vector<uint32_t> extents;
  uint32_t element_bytes = 4;
  uint32_t gap = 0;

  std::vector<uint64_t> strides() const {
    std::vector<uint64_t> result = {element_bytes};
    uint64_t bytes = uint64_t{extents[0]} * element_bytes + gap;
    for (size_t d = 1; d < extents.size(); ++d) {
      bytes = (bytes + 15) / 16 * 16;
      result.push_back(bytes);
      bytes *= extents[d];
    }
    return result;
  }
  uint64_t bytes() const {
    const std::vector<uint64_t> s = strides();
    return extents.size() == 1 ? uint64_t{extents[0]} * element_bytes : s.back() * extents.back();
  }
  TensorMap map(uint64_t address, const std::vector<uint32_t>& box, uint32_t swizzle) const {
    TensorMap result;
    result.mark = TensorMap::written;
    result.address = address;
    result.rank = static_cast<uint8_t>(extents.size());
    result.element_bytes = static_cast<uint8_t>(element_bytes);
    result.swizzle_bytes = static_cast<uint8_t>(swizzle);
    for (size_t d = 0; d < extents.size(); ++d) {
      result.byte_stride[d] = strides()[d];
      result.last[d] = extents[d] - 1;
      result.box[d] = static_cast<uint16_t>(box[d]);
    }
    return result;
  }
};

/// Where byte `offset` of a box lies in shared memory that is aligned to 1 KB, from the tables of the CUDA programming
/// guide: in lines of 128 bytes, piece x of 16 bytes in line y goes to place x ^ (y % 8), ^ (y % 4) within its half, or
/// ^ (y % 2) within its quarter.
uint32_t place_of(uint32_t offset, uint32_t swizzle) {
  if (swizzle == 0) return offset;
  const uint32_t line = offset / 128, piece = offset % 128 / 16, pieces = swizzle / 16;
  return line * 128 + (piece / pieces * pieces + (piece % pieces ^ line % pieces)) * 16 + offset % 16;
}

/// Calls use(byte of the box, byte of the tensor's memory or -1 outside of the tensor) for every byte of the box.
template <class Use>
void each_byte(const Tensor& tensor, const std::vector<uint32_t>& box, const std::vector<int32_t>& corner, Use use) {
  const std::vector<uint64_t> strides = tensor.strides();
  const uint64_t elements =
      std::accumulate(box.begin(), box.end(), uint64_t{1}, [](uint64_t n, uint32_t extent) { return n * extent; });
  for (uint64_t k = 0; k < elements; ++k) {
    int64_t at = 0;
    bool inside = true;
    uint64_t rest = k;
    for (size_t d = 0; d < box.size(); ++d) {
      const int64_t coordinate = corner[d] + static_cast<int64_t>(rest % box[d]);
      rest /= box[d];
      inside = inside && coordinate >= 0 && coordinate < tensor.extents[d];
      at += coordinate * static_cast<int64_t>(strides[d]);
    }
    for (uint32_t b = 0; b < tensor.element_bytes; ++b) {
      use(static_cast<uint32_t>(k * tensor.element_bytes + b), inside ? at + b : int64_t{-1});
    }
  }
}

const std::string parameters = ".param .align 64 .b8 map[128], .param .u64 p0, .param .align 4 .b8 corner[20]";

/// %r0: thread of 256; %r1: an mbarrier; %r2: the tile; %rd1: the map; %r10 ...: the corner's coordinates.
std::string tensor_kernel(const std::string& body) {
  std::string text =
      ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b8 bar[8];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, bar;\n"
      "mov.u32 %r2, tile;\nld.param.u64 %rd0, [p0];\nmov.b64 %rd3, map;\ncvta.param.u64 %rd1, %rd3;\n"
      "setp.eq.u32 %p1, %r0, 0;\nmul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd2, %rd0, %rd4;\n"
      "mad.lo.u32 %r4, %r0, 4, %r2;\n";
  for (int d = 0; d < 5; ++d) {
    text += "ld.param.u32 %r" + std::to_string(10 + d) + ", [corner+" + std::to_string(4 * d) + "];\n";
  }
  return ptx_kernel(text + body, parameters);
}

std::string coordinates(size_t rank) {
  std::string text = "{%r10";
  for (size_t d = 1; d < rank; ++d) text += ", %r" + std::to_string(10 + d);
  return text + "}";
}

/// Copies a box of so many bytes to shared memory, waits for it, and stores the tile to out.
std::string loading_kernel(size_t rank, uint64_t bytes) {
  const std::string count = std::to_string(bytes);
  return tensor_kernel(
      "@%p1 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], " +
      count + ";\n@%p1 cp.async.bulk.tensor." + std::to_string(rank) +
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, " + coordinates(rank) +
      "], [%r1];\nwaiting:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n@!%p3 bra waiting;\n"
      "mov.u32 %r5, 0;\nnext:\nmad.lo.u32 %r6, %r0, 4, %r5;\nsetp.ge.u32 %p4, %r6, " +
      count +
      ";\n@%p4 bra done;\nadd.u32 %r7, %r2, %r6;\nld.shared.u32 %r8, [%r7];\ncvt.u64.u32 %rd5, %r6;\n"
      "add.u64 %rd5, %rd0, %rd5;\nst.global.u32 [%rd5], %r8;\nadd.u32 %r5, %r5, 1024;\nbra next;\ndone:");
}

/// Fills the tile's words with their numbers + 1000 and copies a box of it to global memory.
std::string storing_kernel(size_t rank, uint64_t bytes) {
  return tensor_kernel(
      "mov.u32 %r5, %r0;\nnext:\nshl.b32 %r6, %r5, 2;\nsetp.ge.u32 %p4, %r6, " + std::to_string(bytes) +
      ";\n@%p4 bra filled;\nadd.u32 %r7, %r2, %r6;\nadd.u32 %r8, %r5, 1000;\nst.shared.u32 [%r7], %r8;\n"
      "add.u32 %r5, %r5, 256;\nbra next;\nfilled:\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "@!%p1 bra done;\ncp.async.bulk.tensor." +
      std::to_string(rank) + "d.global.shared::cta.tile.bulk_group [%rd1, " + coordinates(rank) +
      "], [%r2];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\ndone:");
}

std::array<int32_t, 5> filled_up(const std::vector<int32_t>& corner) {
  std::array<int32_t, 5> result{};
  std::copy(corner.begin(), corner.end(), result.begin());
  return result;
}

struct Case {
  Tensor tensor;
  std::vector<uint32_t> box;
  std::vector<int32_t> corner;
  uint32_t swizzle = 0;
};

std::string name_of(const Case& c) {
  std::string name = std::to_string(c.box.size()) + "d, swizzle " + std::to_string(c.swizzle) + ", corner";
  for (const int32_t x : c.corner) name += " " + std::to_string(x);
  return name;
}

/// Every rank; elements of 1, 2, 4 and 8 bytes; every swizzle; boxes inside, over each edge, and outside.
std::vector<Case> cases() {
  const Tensor matrix{{50, 21}, 4, 24}, halves{{100, 40}, 2, 0}, bytes{{77, 30}, 1, 3};
  std::vector<Case> result = {
      {{{1000}}, {64}, {128}},
      {{{1000}}, {64}, {-7}},
      {{{1000}}, {64}, {990}},
      {{{1000}}, {64}, {5000}},
      {{{200}, 8}, {16}, {3}},
      {{{20, 6, 5}, 4, 4}, {8, 3, 4}, {2, 1, 0}},
      {{{20, 6, 5}, 4, 4}, {8, 3, 4}, {-3, 4, -1}},
      {{{9, 7, 5, 3}, 2}, {8, 4, 3, 2}, {4, -1, 3, 2}},
      {{{12, 3, 4, 3, 4}, 2, 8}, {8, 2, 3, 2, 3}, {6, -1, 2, -1, 1}},
      {{{12, 3, 4, 3, 4}, 2, 8}, {8, 2, 3, 2, 3}, {0, 0, 0, 0, 0}},
      {{{10, 6}, 8}, {6, 4}, {-1, 3}},
  };
  for (const uint32_t swizzle : {0u, 32u, 64u, 128u}) {
    const uint32_t row = swizzle == 0 ? 48 : swizzle;
    for (const auto& [x, y] : {std::pair{4, 2}, std::pair{-5, -3}, std::pair{40, 10}, std::pair{-100, 0}}) {
      result.push_back({matrix, {row / 4, 17}, {x, y}, swizzle});
      result.push_back({halves, {row / 2, 19}, {x + 1, y}, swizzle});
      result.push_back({bytes, {row, 9}, {x, y}, swizzle});
    }
  }
  return result;
}

TEST(TensorCopies, BringEachElementToItsPlaceAndZerosFromOutside) {
  for (const Case& c : cases()) {
    std::vector<uint8_t> memory(c.tensor.bytes());
    std::mt19937 random(1);
    for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random() % 255 + 1);
    Buffer<uint8_t> source(memory);
    Buffer<uint8_t> out(tile_bytes, 0xEE);
    const TensorMap map = c.tensor.map(source.address(), c.box, c.swizzle);
    Module module(loading_kernel(c.box.size(), map.box_bytes()));
    module.allow(source).allow(out).check(CheckLevel::full);
    module.launch("k", {1}, {256}, Arguments(MapParameter(map), out.address(), filled_up(c.corner)));
    std::vector<uint8_t> expected(tile_bytes, 0xEE);
    each_byte(c.tensor, c.box, c.corner, [&](uint32_t offset, int64_t at) {
      expected[place_of(offset, c.swizzle)] = at < 0 ? 0 : memory[static_cast<size_t>(at)];
    });
    EXPECT_EQ(out.values(), expected) << name_of(c);
  }
}

TEST(TensorCopies, TakeEachElementToItsPlaceAndNothingOutside) {
  for (const Case& c : cases()) {
    Buffer<uint8_t> target(c.tensor.bytes(), 0xEE);
    const TensorMap map = c.tensor.map(target.address(), c.box, c.swizzle);
    Module module(storing_kernel(c.box.size(), map.box_bytes()));
    module.allow(target).check(CheckLevel::full);
    module.launch("k", {1}, {256}, Arguments(MapParameter(map), uint64_t{0}, filled_up(c.corner)));
    std::vector<uint8_t> expected(c.tensor.bytes(), 0xEE);
    each_byte(c.tensor, c.box, c.corner, [&](uint32_t offset, int64_t at) {
      const uint32_t place = place_of(offset, c.swizzle);
      if (at >= 0) expected[static_cast<size_t>(at)] = static_cast<uint8_t>((1000 + place / 4) >> 8 * (place % 4));
    });
    EXPECT_EQ(target.values(), expected) << name_of(c);
  }
}

TEST(TensorCopies, SwizzleByTheAddressNotByTheRow) {
  // The tile begins one line of 128 bytes behind a multiple of 1 KB: line y is swizzled as line y + 1.
  Buffer<uint8_t> source(std::vector<uint8_t>(1024));
  std::iota(source.values().begin(), source.values().end(), uint8_t{0});
  Buffer<uint8_t> out(tile_bytes);
  const Tensor tensor{{32, 8}};
  const TensorMap map = tensor.map(source.address(), {32, 7}, 128);
  std::string text = loading_kernel(2, map.box_bytes());
  text.replace(text.find("mov.u32 %r2, tile;"), 18, "mov.u32 %r2, tile+128;");
  Module module(text);
  module.allow(source).allow(out).check(CheckLevel::full);
  module.launch("k", {1}, {256}, Arguments(MapParameter(map), out.address(), filled_up({0, 0})));
  for (uint32_t k = 0; k < map.box_bytes(); ++k) {
    EXPECT_EQ(out[place_of(k + 128, 128) - 128], source[k]) << k;
  }
}

// Faults.

class TensorFaults : public testing::Test {
 protected:
  /// Fault of a copy to shared memory of a box of 16 x 8 words of a matrix of 32 x 32, after `change` of the map and
  /// the text.
  Fault fault(const std::function<void(TensorMap&)>& change, const std::string& find = "",
              const std::string& put = "") {
    TensorMap map = Tensor{{32, 32}}.map(source_.address(), {16, 8}, 0);
    change(map);
    std::string text = loading_kernel(2, 512);
    if (!find.empty()) text.replace(text.find(find), find.size(), put);
    Module module(text);
    module.allow(source_, "the matrix").allow(out_).check(CheckLevel::full);
    return module.fault("k", {1}, {256}, Arguments(MapParameter(map), out_.address(), filled_up({0, 25})));
  }
  Buffer<uint32_t> source_{std::vector<uint32_t>(32 * 32)}, out_{std::vector<uint32_t>(tile_bytes / 4)};
};

TEST_F(TensorFaults, BytesThatAreNoTensorMapAreNamed) {
  const Fault none = fault([](TensorMap& map) { map.mark = 0; });
  EXPECT_EQ(none.kind, FaultKind::illegal_instruction);
  EXPECT_THAT(none.report, AllOf(HasSubstr("thread (0, 0, 0)"), HasSubstr("are no tensor map: cuTensorMapEncodeTiled"),
                                 HasSubstr("cp.async.bulk.tensor.2d")));
  EXPECT_THAT(fault([](TensorMap& map) { map.rank = 3; }).report,
              HasSubstr("the tensor map is of 3 dimensions, and the copy of 2"));
  EXPECT_EQ(fault([](TensorMap&) {}, "[%rd1, ", "[%rd1+32, ").kind, FaultKind::misaligned_address);
  EXPECT_EQ(fault([](TensorMap&) {}, "mov.b64 %rd3, map;", "mov.b64 %rd3, 4096;").kind, FaultKind::illegal_address);
}

TEST_F(TensorFaults, BoxesAreHeldAgainstMemoryWhateverTheMapSays) {
  EXPECT_THAT(fault([](TensorMap& map) { map.last[1] = 32; }).report,
              AllOf(HasSubstr("reads 64 bytes"), HasSubstr("the matrix")))
      << "row 32 of 32";
  EXPECT_THAT(fault([](TensorMap&) {}, "mov.u32 %r2, tile;", "mov.u32 %r2, tile+64;").report,
              HasSubstr("which is no multiple of 128"));
  EXPECT_THAT(fault([](TensorMap&) {}, "mov.u32 %r2, tile;", "mov.u32 %r2, tile+7936;").report,
              AllOf(HasSubstr("writes 512 bytes"), HasSubstr("shared memory")));
}

TEST_F(TensorFaults, ABoxThatNobodyWaitsForIsARace) {
  const Fault race =
      fault([](TensorMap&) {}, "mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;", "setp.eq.u32 %p3, %r0, %r0;");
  EXPECT_EQ(race.kind, FaultKind::race);
  EXPECT_THAT(race.report, AllOf(HasSubstr("is still writing"), HasSubstr("the other: "),
                                 HasSubstr("cp.async.bulk.tensor.2d.shared::cluster.global")));
}

}  // namespace
}  // namespace kiln::emulator::test::core_tensor_copies_test
