// mma: every form against products that the host works out element by element, with where the PTX ISA puts each.
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "core_run_fragments.h"
#include "core_small_floats.h"
#include "core_strict_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test::core_matrix_product_test {
namespace {

using namespace testing_support::mma;
using testing::AllOf;
using testing::HasSubstr;

/// x rounded to f16, ties to even.
double to_half(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / step) * step;
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, x) : rounded;
}

/// An element of the result before it is rounded: of floats in f32, of integers exact.
double sum_of(const Form& form, const std::vector<double>& a, const std::vector<double>& b, double c, uint32_t row,
              uint32_t column) {
  if (form.integers()) {
    double sum = c;
    for (uint32_t k = 0; k < form.k; ++k) sum += a[row * form.k + k] * b[k * columns + column];
    return sum;
  }
  auto sum = static_cast<float>(c);
  for (uint32_t k = 0; k < form.k; ++k) {
    sum = std::fma(static_cast<float>(a[row * form.k + k]), static_cast<float>(b[k * columns + column]), sum);
  }
  return sum;
}

/// Whether `bits` are the form's result for that sum. A NaN must be the canonical one.
bool is_result(const Form& form, uint32_t bits, double sum) {
  if (form.integers()) {
    const double clamped = std::clamp(sum, -0x1p31, 0x1p31 - 1);
    return bits == (form.saturates ? static_cast<uint32_t>(static_cast<int32_t>(clamped))
                                   : static_cast<uint32_t>(static_cast<int64_t>(sum)));
  }
  if (!form.half_sums()) {
    return bits == (std::isnan(sum) ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(static_cast<float>(sum)));
  }
  if (std::isnan(sum)) return bits == 0x7FFF;
  const double wanted = to_half(sum), got = half_format.value(static_cast<uint16_t>(bits));
  return got == wanted && std::signbit(got) == std::signbit(wanted);
}

/// All values of a type of `bits` bits.
const std::vector<double>& all_values(const std::string& type, uint32_t bits) {
  static std::map<std::string, std::vector<double>> tables;
  std::vector<double>& table = tables[type];
  for (auto x = static_cast<uint32_t>(table.size()); x < 1u << bits; ++x) table.push_back(value_of(type, x));
  return table;
}

std::vector<double> values_of(const std::string& type, const std::vector<uint32_t>& bits) {
  const bool wide = type == "f32" || type == "tf32" || type == "s32";
  const std::vector<double>& known = wide ? std::vector<double>{} : all_values(type, type.ends_with("16") ? 16 : 8);
  std::vector<double> values;
  for (const uint32_t x : bits) values.push_back(wide ? value_of(type, x) : known[x]);
  return values;
}

/// Expects that `tiles` give, on all units, their element of C and after it the products in the order of k.
void expect_products(const Form& form, const std::vector<Tile>& tiles) {
  std::vector<double> sums;
  for (const Tile& tile : tiles) {
    const std::vector<double> a = values_of(form.a, tile.a), b = values_of(form.b, tile.b),
                              c = values_of(form.sum, tile.c);
    for (uint32_t row = 0; row < form.rows; ++row) {
      for (uint32_t column = 0; column < columns; ++column) {
        sums.push_back(sum_of(form, a, b, c[row * columns + column], row, column));
      }
    }
  }
  Fragments fragments = fragments_of(form, tiles);
  for (const UnitTable* units : unit_tables()) {
    run_fragments(form, fragments, *units);
    int failures = 0;
    for (size_t t = 0; t < tiles.size(); ++t) {
      for (uint32_t lane = 0; lane < lanes && failures < 5; ++lane) {
        for (uint32_t i = 0; i < form.lane_sums(); ++i) {
          const Place at = place_in_sums(lane, i);
          const double sum = sums[(t * form.rows + at.row) * columns + at.column];
          const uint32_t got = result_at(form, fragments, t, lane, i);
          if (is_result(form, got, sum)) continue;
          ++failures;
          ADD_FAILURE() << units->name << ", " << form.opcode() << ", tile " << t << ", row " << at.row << ", column "
                        << at.column << ": bits " << got << " for " << sum;
        }
      }
    }
  }
}

TEST(MatrixProducts, AreWhatTheHostWorksOut) {
  // 10,000 tiles at least with each type of A: what differs between shapes are the places, not the arithmetic.
  for (const Form& form : all_forms()) {
    const uint32_t tiles_of_kind = form.shape == "m16n8k8" ? 2500 : form.shape == "m16n8k16" ? 625 : 125;
    Draw draw(38);
    std::vector<Tile> tiles;
    for (const Draw::Kind kind : {Draw::Kind::usual, Draw::Kind::edges, Draw::Kind::extremes, Draw::Kind::any}) {
      for (uint32_t t = 0; t < tiles_of_kind; ++t) tiles.push_back(draw.tile(form, kind));
    }
    expect_products(form, tiles);
  }
}

TEST(MatrixProducts, KeepEachElementApart) {
  // A has one element that is not 0, and elements of B differ: row and column of each place show in the result.
  for (const Form& form : all_forms()) {
    Draw draw(39);
    std::vector<Tile> tiles;
    const Tile other = draw.tile(form, Draw::Kind::usual);
    for (uint32_t place = 0; place < form.rows * form.k; ++place) {
      Tile tile;
      tile.a.assign(form.rows * form.k, 0);
      tile.a[place] = form.integers() ? 1 : landmarks_of(form.a).one;
      tile.b = other.b;
      tile.c.assign(form.rows * columns, 0);
      tiles.push_back(tile);
    }
    expect_products(form, tiles);
  }
}

TEST(MatrixProducts, MayOverwriteTheirOperands) {
  // Sums in place, as loops have them, with factors 1 and 2.
  Module module(
      ptx_kernel("mov.b32 %r8, 0x3C003C00;\nmov.b32 %r9, 0x40004000;\nmov.f32 %f0, 0f3F000000;\n"
                 "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r8, %r9, _, %f0}, {%r8, %r8}, {%r9}, "
                 "{%f0, 0f3F800000, %f0, %f0};\n"
                 "mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd0, %r0, 16, %rd0;\n"
                 "st.global.v4.b32 [%rd0], {%r8, %r9, %f0, %r0};"));
  Buffer<float> out(4 * lanes);
  module.allow(out);
  module.launch("k", {1}, {lanes}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  for (size_t lane = 0; lane < lanes; ++lane) {
    EXPECT_EQ(out[4 * lane], 16.5f);
    EXPECT_EQ(out[4 * lane + 1], 17.0f);
    EXPECT_EQ(out[4 * lane + 2], 16.5f);
  }
}

const Form one_form = {"m16n8k16", "f16", "f16", "f32", 16, 16};

/// The fault of a kernel of one block of `threads` in which `before` stands in front of the product, and "done" behind.
Fault fault_of(const std::string& before, uint32_t threads) {
  Module module(ptx_kernel("mov.u32 %r0, %tid.x;\n" + before + product_text(one_form) + "done:"));
  return module.fault("k", {1}, {threads}, Arguments(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0}));
}

TEST(MatrixProducts, NeedAllThreadsOfTheirWarp) {
  const Fault some = fault_of("setp.gt.u32 %p1, %r0, 40;\n@%p1 bra done;\n", 64);
  EXPECT_EQ(some.kind, FaultKind::illegal_instruction);
  EXPECT_THAT(some.report, AllOf(HasSubstr("thread (32, 0, 0) (warp 1, lane 0): all 32 threads of a warp must execute "
                                           "this together, and lanes 0xfffffe00 of this one have left the kernel or "
                                           "were never there"),
                                 HasSubstr("mma.sync.aligned.m16n8k16")));
  EXPECT_EQ(fault_of("", 48).kind, FaultKind::illegal_instruction);
  const Fault barrier = fault_of("setp.gt.u32 %p1, %r0, 15;\n@%p1 bar.sync 0;\n", 32);
  EXPECT_EQ(barrier.kind, FaultKind::illegal_instruction);
  EXPECT_THAT(barrier.report,
              AllOf(HasSubstr("thread (0, 0, 0) (warp 0, lane 0): all 32 threads of a warp must execute this together, "
                              "and lanes 0xffff0000 of this one wait elsewhere for ever\n  PTX line "),
                    HasSubstr("all that wait:\n  warp 0, lanes 0xffff0000, from thread (16, 0, 0): waits for lanes "
                              "0x0000ffff, which have not come to this instruction"),
                    HasSubstr("bar.sync 0")));
}

TEST(MatrixProducts, WaitForThreadsOnAnotherWay) {
  Module module(
      ptx_kernel("mov.u32 %r0, %tid.x;\nmov.b32 %r8, 0x3C003C00;\nmov.b32 %r9, %r8;\nmov.b32 %r10, %r8;\n"
                 "mov.b32 %r11, %r8;\nmov.b32 %r12, %r8;\nmov.b32 %r13, %r8;\nmov.b32 %r16, 0;\n"
                 "mov.b32 %r17, 0;\nmov.b32 %r18, 0;\nmov.b32 %r19, 0;\n"
                 "setp.gt.u32 %p1, %r0, 11;\n@%p1 bra other;\nmov.b32 %r8, 0;\nother:\n" +
                 product_text(one_form) +
                 "ld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd0, %r0, 4, %rd0;\nst.global.b32 [%rd0], %r20;"));
  Buffer<float> out(lanes);
  module.allow(out);
  module.launch("k", {1}, {lanes}, Arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0}));
  for (size_t lane = 0; lane < lanes; ++lane) EXPECT_EQ(out[lane], lane < 12 ? 8.0f : 16.0f) << lane;
}

TEST(MatrixProducts, AreRefusedWhereTheTargetLacksThem) {
  for (const Form& form : all_forms()) {
    const int first = first_target(form);
    for (const int target : {72, 75, 80, 86, 89, 90}) {
      const std::string text = kernel_text(form, target);
      if (target >= first) {
        load_program(text);
      } else {
        EXPECT_THAT(load_error(text),
                    AllOf(HasSubstr("mma of shape ." + form.shape + " and these types needs .target sm_" +
                                    std::to_string(first) + " or higher"),
                          HasSubstr(form.opcode())));
      }
    }
  }
}

TEST(MatrixProducts, AreRefusedInFormsThatDoNotExist) {
  const std::string operands = " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r10, %r11, %r12, %r13};";
  for (const auto& [words, why] : std::vector<std::pair<std::string, std::string>>{
           {"mma.aligned.m16n8k16.row.col.f32.f16.f16.f32", "expected .sync"},
           {"mma.sync.m16n8k16.row.col.f32.f16.f16.f32", "expected .aligned"},
           {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "expected .col"},
           {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "this shape is not supported"},
           {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16", "no mma of shape .m16n8k16 has these types"},
           {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16", "no mma of shape .m16n8k16 has these types"},
           {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "no mma of shape .m16n8k16 has these types"},
           {"mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "no mma of shape .m16n8k16 has these types"},
           {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.f32", "no mma of shape .m8n8k16 has these types"},
           {"mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32", "'.satfinite' is not known here"},
           {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "expected a vector of 2 registers"}}) {
    EXPECT_THAT(load_error(ptx_kernel(words + operands)), HasSubstr(why)) << words;
  }
}

// Unwritten values: %r8 to %r13 and %r16 to %r19 are fragments of one_form that somebody has written, but for a lane's
// part of one of them.
std::string with_unwritten(const std::string& register_name, uint32_t lane) {
  std::string text;
  for (const uint32_t r : {8, 9, 10, 11, 12, 13, 16, 17, 18, 19}) text += "mov.b32 %r" + std::to_string(r) + ", 0;\n";
  return text + "setp.eq.u32 %p1, %r3, " + std::to_string(lane) + ";\n@%p1 ld.shared.b32 " + register_name +
         ", [%r2];\n" + product_text(one_form);
}

/// The results, by row and column, whose storing is a fault.
std::vector<Place> unwritten_results(const std::string& register_name, uint32_t lane) {
  std::vector<Place> found;
  for (uint32_t at = 0; at < lanes; ++at) {
    for (uint32_t i = 0; i < 4; ++i) {
      const Fault fault =
          run_strict({with_unwritten(register_name, lane) + "setp.eq.u32 %p2, %r3, " + std::to_string(at) +
                          ";\n@%p2 st.global.b32 [%rd0], %r" + std::to_string(d_first + i) + ";",
                      lanes});
      if (!fault.report.empty()) {
        EXPECT_THAT(fault.report, AllOf(HasSubstr("(uninitialised)"), HasSubstr("stored here: PTX line ")));
        found.push_back(place_in_sums(at, i));
      }
    }
  }
  return found;
}

TEST(MatrixProducts, OfUnwrittenValuesAreUnwrittenInTheirRowsAndColumnsOnly) {
  const auto all_in = [](const std::vector<Place>& places, const std::function<bool(Place)>& belongs, size_t count) {
    EXPECT_EQ(places.size(), count);
    for (const Place& place : places) EXPECT_TRUE(belongs(place)) << place.row << ", " << place.column;
  };
  all_in(
      unwritten_results("%r8", 13), [](Place p) { return p.row == 3; }, columns);
  all_in(
      unwritten_results("%r11", 30), [](Place p) { return p.row == 15; }, columns);
  all_in(
      unwritten_results("%r12", 22), [](Place p) { return p.column == 5; }, one_form.rows);
  all_in(
      unwritten_results("%r13", 0), [](Place p) { return p.column == 0; }, one_form.rows);
  all_in(
      unwritten_results("%r17", 6), [](Place p) { return p.row == 1 && p.column == 5; }, 1);
  all_in(
      unwritten_results("%r18", 31), [](Place p) { return p.row == 15 && p.column == 6; }, 1);
}

TEST(MatrixProducts, OfWrittenValuesAreWritten) {
  // The registers of the result were unwritten before.
  expect_silence({"ld.shared.b32 %r20, [%r2];\n" + with_unwritten("%r8", 40) + "st.global.b32 [%rd0], %r20;", lanes});
}

}  // namespace
}  // namespace kiln::emulator::test::core_matrix_product_test
