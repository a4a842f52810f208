// Instructions of tensor cores on whatever device there is: every form of mma, and the moves of matrices of a warp,
// against what the PTX ISA says. On the first card of a kind this is what shows whether the emulated device read the
// ISA as chips do: each form also prints a digest of its results, for comparison with the emulated chip's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "compared_tiles.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "open_device.h"
#include "product_forms.h"

namespace kiln::device::tensor_test {
namespace {

using namespace testing_support::mma;

class TensorCores : public testing::Test {
 protected:
  static void SetUpTestSuite() { open_ = new OpenDevice(); }
  static void TearDownTestSuite() { delete open_; }

  static int arch() { return 10 * open_->device.info().cc_major + open_->device.info().cc_minor; }

  /// Runs kernel `k` of the module with the addresses of `words`, and leaves there what the device's memory then holds.
  static void run(const std::string& ptx, unsigned blocks, const std::vector<std::vector<uint32_t>*>& words) {
    const Current current(*open_->context);
    const Module module(open_->context, ptx, "tensor_test");
    const Stream stream(open_->context);
    std::vector<Buffer> buffers;
    std::vector<uint64_t> addresses;
    for (const std::vector<uint32_t>* each : words) {
      buffers.push_back(upload(open_->context, *each));
      addresses.push_back(buffers.back().address());
    }
    std::vector<void*> parameters;
    for (uint64_t& address : addresses) parameters.push_back(&address);
    launch(module.function("k"), {blocks}, {lanes}, 0, stream.raw(), parameters.data());
    stream.synchronize();
    for (size_t i = 0; i < words.size(); ++i) {
      *words[i] = download<uint32_t>(*open_->context, addresses[i], words[i]->size());
    }
  }

 private:
  static OpenDevice* open_;  // opening costs a second; no test changes it
};

OpenDevice* TensorCores::open_ = nullptr;

// --- mma
// --------------------------------------------------------------------------------------------------------------

class TensorProducts : public TensorCores, public testing::WithParamInterface<Form> {
 protected:
  void SetUp() override {
    if (arch() < first_target(GetParam())) {
      GTEST_SKIP() << "compute capability " << arch() << " lacks this form, which " << first_target(GetParam())
                   << " has";
    }
  }

  static Fragments multiply(const std::vector<Tile>& tiles) {
    Fragments fragments = fragments_of(GetParam(), tiles);
    fragments.d.assign(fragments.c.size(), 0);
    run(kernel_text(GetParam(), first_target(GetParam())), static_cast<unsigned>(tiles.size()),
        {&fragments.a, &fragments.b, &fragments.c, &fragments.d});
    return fragments;
  }
};

/// An element of D without any rounding, and the sum of the magnitudes that are added.
struct Sum {
  double value, magnitude;
};

Sum sum_of(const Form& form, const Tile& tile, Place at) {
  const double c = value_of(form.sum, tile.c[at.row * columns + at.column]);
  Sum sum{c, std::abs(c)};
  for (uint32_t k = 0; k < form.k; ++k) {
    const double product =
        value_of(form.a, tile.a[at.row * form.k + k]) * value_of(form.b, tile.b[k * columns + at.column]);
    sum.value += product;
    sum.magnitude += std::abs(product);
  }
  return sum;
}

/// Most that tensor cores may err by, as docs/numerics.md derives it for one instruction: steps of the sum cut bits of
/// f32, fp8 keeps 13 bits; sums of f16 are rounded after each of at most two steps.
double allowed(const Form& form, const Sum& sum) {
  const double cut = form.bits() == 8 ? 0x1p-6 : 2 * (form.k + 1) * 0x1p-24;
  return cut * sum.magnitude + (form.half_sums() ? 2 * (0x1p-11 * sum.magnitude + 0x1p-25) : 0);
}

template <class Judge>
void for_each_result(const Form& form, const std::vector<Tile>& tiles, const Fragments& fragments, const Judge& judge) {
  int failures = 0;
  for (size_t t = 0; t < tiles.size(); ++t) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (uint32_t i = 0; i < form.lane_sums() && failures < 5; ++i) {
        const Place at = place_in_sums(lane, i);
        const uint32_t got = result_at(form, fragments, t, lane, i);
        const std::string wrong = judge(sum_of(form, tiles[t], at), got);
        if (wrong.empty()) continue;
        ++failures;
        ADD_FAILURE() << form.opcode() << ", tile " << t << ", row " << at.row << ", column " << at.column << ": "
                      << wrong;
      }
    }
  }
}

std::string differs(double got, double wanted) {
  return "got " + std::to_string(got) + ", wanted " + std::to_string(wanted);
}

std::vector<Tile> tiles_of(const Form& form, Draw::Kind kind, uint32_t count) {
  Draw draw(41);
  std::vector<Tile> tiles;
  for (uint32_t t = 0; t < count; ++t) tiles.push_back(draw.tile(form, kind));
  return tiles;
}

TEST_P(TensorProducts, AreWithinTheirBounds) {
  const Form& form = GetParam();
  const std::vector<Tile> tiles = tiles_of(form, Draw::Kind::usual, 64);
  for_each_result(form, tiles, multiply(tiles), [&](const Sum& sum, uint32_t bits) -> std::string {
    const double got = value_of(form.sum, bits);
    const bool is_right = form.integers() ? got == sum.value : std::abs(got - sum.value) <= allowed(form, sum);
    return is_right ? "" : differs(got, sum.value) + ", allowed " + std::to_string(allowed(form, sum));
  });
}

// Every element of A and of B is told from the others: one factor is 1, and B's elements differ.
TEST_P(TensorProducts, HaveTheirElementsWhereTheIsaPutsThem) {
  const Form& form = GetParam();
  const Tile other = tiles_of(form, Draw::Kind::usual, 1)[0];
  std::vector<Tile> tiles;
  for (uint32_t place = 0; place < form.rows * form.k; ++place) {
    Tile tile{std::vector<uint32_t>(form.rows * form.k), other.b, std::vector<uint32_t>(form.rows * columns)};
    tile.a[place] = form.integers() ? 1 : landmarks_of(form.a).one;
    tiles.push_back(std::move(tile));
  }
  for_each_result(form, tiles, multiply(tiles), [&](const Sum& sum, uint32_t bits) -> std::string {
    const double got = value_of(form.sum, bits);
    return got == sum.value ? "" : differs(got, sum.value);
  });
}

/// Tiles with an infinity or a NaN among A's elements, where the type has one.
std::vector<Tile> tiles_with_specials(const Form& form) {
  std::vector<Tile> tiles = tiles_of(form, Draw::Kind::usual, 64);
  for (size_t t = 0; t < tiles.size(); ++t) {
    const uint32_t infinity = landmarks_of(form.a).infinity;
    const uint32_t not_a_number = form.a == "e4m3" ? infinity : form.a == "tf32" ? infinity | 0x400000 : infinity + 1;
    tiles[t].a[t * 7 % tiles[t].a.size()] = t % 3 == 0 ? not_a_number : infinity;
  }
  return tiles;
}

void expect_wrapped_or_saturated(const Form& form, const std::vector<Tile>& tiles, const Fragments& fragments) {
  for_each_result(form, tiles, fragments, [&](const Sum& sum, uint32_t bits) -> std::string {
    const double clamped = std::clamp(sum.value, -0x1p31, 0x1p31 - 1);
    const auto wanted = form.saturates ? static_cast<uint32_t>(static_cast<int32_t>(clamped))
                                       : static_cast<uint32_t>(static_cast<int64_t>(sum.value));
    return bits == wanted ? "" : differs(bits, wanted);
  });
}

void expect_specials(const Form& form, const std::vector<Tile>& tiles, const Fragments& fragments) {
  for_each_result(form, tiles, fragments, [&](const Sum& sum, uint32_t bits) -> std::string {
    const double got = value_of(form.sum, bits);
    const bool is_right = std::isnan(sum.value)   ? std::isnan(got)
                          : std::isinf(sum.value) ? got == sum.value
                                                  : std::abs(got - sum.value) <= allowed(form, sum);
    return is_right ? "" : differs(got, sum.value);
  });
}

// Integers wrap or saturate; infinities and NaN reach their rows, and no other.
TEST_P(TensorProducts, KeepWhatLiesBeyondTheirRange) {
  const Form& form = GetParam();
  const std::vector<Tile> tiles = form.integers() ? tiles_of(form, Draw::Kind::edges, 64) : tiles_with_specials(form);
  (form.integers() ? expect_wrapped_or_saturated : expect_specials)(form, tiles, multiply(tiles));
}

/// Writes words to a file in the folder TEST_PRODUCTS, if that is set.
void keep(const std::vector<uint32_t>& words, const std::string& name) {
  const char* const folder = std::getenv("TEST_PRODUCTS");
  if (folder == nullptr) return;
  std::filesystem::create_directories(folder);
  std::ofstream file(std::filesystem::path(folder) / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(4 * words.size()));
  ASSERT_TRUE(file.flush()) << folder << "/" << name;
}

// scripts/gpu compares the lines of a card with those of the emulated chip, `KILN_EMULATOR_TENSOR=hardware`.
TEST_P(TensorProducts, AreTheSameTwice) {
  const Form& form = GetParam();
  for (const auto& [word, tiles] : compared_tiles(form)) {
    const Fragments once = multiply(tiles), again = multiply(tiles);
    EXPECT_EQ(once.d, again.d);
    std::printf("%s %s %08x\n", word.c_str(), form.opcode().c_str(), digest_of(once.d));
    keep(once.d, form.opcode() + "." + word);
  }
}

std::string name_of(const testing::TestParamInfo<Form>& info) {
  std::string name = info.param.opcode().substr(std::string("mma.sync.aligned.").size());
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Forms, TensorProducts, testing::ValuesIn(all_forms()), name_of);

// --- Matrices of a warp
// -----------------------------------------------------------------------------------------------

// Four matrices of 8 x 8 elements of 16 bits: element (row, column) of matrix m is 64 m + 8 row + column.
std::vector<uint32_t> four_matrices() {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 128; ++i) words.push_back(2 * i | (2 * i + 1) << 16);
  return words;
}

/// Lane l's register of a matrix: row l / 4, columns 2 (l % 4) and the next; of the transposed matrix likewise.
uint32_t fragment_of(uint32_t matrix, uint32_t lane, bool transposed) {
  const uint32_t row = lane / 4, column = lane % 4 * 2;
  const auto at = [&](uint32_t c) { return 64 * matrix + (transposed ? 8 * c + row : 8 * row + c); };
  return at(column) | at(column + 1) << 16;
}

/// p0: four matrices, which come to shared memory; p1: four words for each lane, those of %r8 to %r11 at the end.
std::string move_text(const std::string& before, int target) {
  return ".version 7.8\n.target sm_" + std::to_string(target) +
         "\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1)\n{\n.reg .b32 %r<32>;\n.reg .b64 "
         "%rd<4>;\n"
         ".shared .align 16 .b8 s[512];\n"
         "mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [p0];\nmul.wide.u32 %rd1, %r0, 16;\nadd.u64 %rd0, %rd0, %rd1;\n"
         "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd0];\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 16, %r1;\n"
         "st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\nbar.sync 0;\n"
         "mov.b32 %r8, 0;\nmov.b32 %r9, 0;\nmov.b32 %r10, 0;\nmov.b32 %r11, 0;\n" +
         before +
         "ld.param.u64 %rd2, [p1];\nadd.u64 %rd2, %rd2, %rd1;\nst.global.v4.b32 [%rd2], {%r8, %r9, %r10, "
         "%r11};\nret;\n}\n";
}

TEST_F(TensorCores, LoadMatricesByTheRowsThatLanesName) {
  for (const uint32_t count : {1U, 2U, 4U}) {
    for (const bool transposed : {false, true}) {
      const std::string registers[] = {"", "{%r8}", "{%r8, %r9}", "", "{%r8, %r9, %r10, %r11}"};
      std::vector<uint32_t> matrices = four_matrices(), out(4 * lanes);
      run(move_text("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") +
                        ".shared.b16 " + registers[count] + ", [%r2];\n",
                    75),
          1, {&matrices, &out});
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        for (uint32_t m = 0; m < 4; ++m) {
          EXPECT_EQ(out[4 * lane + m], m < count ? fragment_of(m, lane, transposed) : 0)
              << "x" << count << (transposed ? ".trans" : "") << ", lane " << lane << ", matrix " << m;
        }
      }
    }
  }
}

TEST_F(TensorCores, TransposeAMatrixInRegisters) {
  std::vector<uint32_t> matrices = four_matrices(), out(4 * lanes);
  run(move_text("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r12}, [%r2];\n"
                "movmatrix.sync.aligned.m8n8.trans.b16 %r8, %r12;\n",
                75),
      1, {&matrices, &out});
  for (uint32_t lane = 0; lane < lanes; ++lane) EXPECT_EQ(out[4 * lane], fragment_of(0, lane, true)) << "lane " << lane;
}

TEST_F(TensorCores, StoreMatricesByTheRowsThatLanesName) {
  if (arch() < 90) GTEST_SKIP() << "compute capability " << arch() << " lacks stmatrix, which 90 has";
  for (const bool transposed : {false, true}) {
    std::vector<uint32_t> matrices = four_matrices(), out(4 * lanes);
    run(move_text(std::string("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r12, %r13, %r14, %r15}, [%r2];\nbar.sync 0;\n"
                              "stmatrix.sync.aligned.m8n8.x4") +
                      (transposed ? ".trans" : "") +
                      ".shared.b16 [%r2], {%r12, %r13, %r14, %r15};\nbar.sync 0;\n"
                      "ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r2];\n",
                  90),
        1, {&matrices, &out});
    for (uint32_t word = 0; word < out.size(); ++word) {
      const uint32_t matrix = word / 32, lane = word % 32;  // word `lane` of a matrix is that lane's fragment
      EXPECT_EQ(out[word], fragment_of(matrix, lane, transposed)) << "word " << word;
    }
  }
}

}  // namespace
}  // namespace kiln::device::tensor_test
