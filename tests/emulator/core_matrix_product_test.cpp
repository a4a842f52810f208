// mma: every form against products that the host works out element by element, with where the PTX ISA puts each.
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "core_small_floats.h"
#include "core_strict_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test::core_matrix_product_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t rows = 16, columns = 8, lanes = 32;

/// A form of mma. Elements of the factors have 16 bits.
struct Form {
  std::string shape, element, sum;
  uint32_t k;
  bool half_sums() const { return sum == "f16"; }
  bool bfloats() const { return element == "bf16"; }
  uint32_t a_registers() const { return rows * k / 2 / lanes; }
  uint32_t b_registers() const { return columns * k / 2 / lanes; }
  uint32_t sum_registers() const { return rows * columns / lanes / (half_sums() ? 2 : 1); }
  std::string opcode() const {
    return "mma.sync.aligned." + shape + ".row.col." + sum + "." + element + "." + element + "." + sum;
  }
};

const std::vector<Form> forms = {{"m16n8k8", "f16", "f16", 8},   {"m16n8k8", "f16", "f32", 8},
                                 {"m16n8k16", "f16", "f16", 16}, {"m16n8k16", "f16", "f32", 16},
                                 {"m16n8k8", "bf16", "f32", 8},  {"m16n8k16", "bf16", "f32", 16}};

/// A place in a matrix.
struct Place {
  uint32_t row, column;
};

// The ISA's formulas for element i of a lane's fragment.
Place place_in_a(uint32_t lane, uint32_t i) {
  return {lane / 4 + (i / 2 % 2 == 1 ? 8 : 0), lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place place_in_b(uint32_t lane, uint32_t i) {
  return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
}
Place place_in_sums(uint32_t lane, uint32_t i) {
  return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)};
}

/// Operands and result of one product, as bits.
struct Tile {
  std::vector<uint16_t> a, b;  // [row][k], [k][column]
  std::vector<uint32_t> c, d;  // [row][column]
};

/// Words of the fragments of all tiles, by tile, register and lane.
struct Fragments {
  std::vector<uint32_t> a, b, c, d;
};

std::string vector_text(uint32_t first, uint32_t count) {
  std::string text = "{";
  for (uint32_t k = 0; k < count; ++k) text += (k == 0 ? "%r" : ", %r") + std::to_string(first + k);
  return text + "}";
}

/// "ld.global" or "st.global" of a fragment's registers, parameter `index`.
std::string move_text(bool store, uint32_t index, uint32_t first, uint32_t count) {
  std::string text = "ld.param.u64 %rd0, [p" + std::to_string(index) + "];\nmul.lo.u32 %r30, %r2, " +
                     std::to_string(count * lanes) + ";\nadd.u32 %r30, %r30, %r1;\nmad.wide.u32 %rd0, %r30, 4, %rd0;\n";
  for (uint32_t k = 0; k < count; ++k) {
    const std::string at = "[%rd0+" + std::to_string(128 * k) + "]", r = "%r" + std::to_string(first + k);
    text += store ? "st.global.b32 " + at + ", " + r + ";\n" : "ld.global.b32 " + r + ", " + at + ";\n";
  }
  return text;
}

constexpr uint32_t a_first = 8, b_first = 12, c_first = 16, d_first = 20;

std::string product_text(const Form& form) {
  return form.opcode() + " " + vector_text(d_first, form.sum_registers()) + ", " +
         vector_text(a_first, form.a_registers()) + ", " + vector_text(b_first, form.b_registers()) + ", " +
         vector_text(c_first, form.sum_registers()) + ";\n";
}

std::string kernel_text(const Form& form) {
  return ptx_kernel(
      "mov.u32 %r0, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r0, %r3, %r4, %r0;\n"
      "and.b32 %r1, %r0, 31;\nshr.u32 %r2, %r0, 5;\n" +
      move_text(false, 0, a_first, form.a_registers()) + move_text(false, 1, b_first, form.b_registers()) +
      move_text(false, 2, c_first, form.sum_registers()) + product_text(form) +
      move_text(true, 3, d_first, form.sum_registers()));
}

/// Runs the form on fragments, whose d it fills in, one warp a tile.
void run_fragments(const Form& form, Fragments& fragments, const UnitTable& units) {
  const auto program = load_program(kernel_text(form), units);
  const size_t tiles = fragments.a.size() / (form.a_registers() * lanes);
  fragments.d.assign(fragments.c.size(), 0);
  std::vector<Region> regions;
  Arguments arguments;
  for (auto* words : {&fragments.a, &fragments.b, &fragments.c, &fragments.d}) {
    const auto address = reinterpret_cast<uint64_t>(words->data());
    regions.push_back({address, address + words->size() * 4, "fragments"});
    arguments.add(address);
  }
  LaunchRequest r;
  r.kernel = find_kernel(*program, "k");
  r.grid = {static_cast<uint32_t>(tiles)};
  r.block = {lanes};
  r.parameters = arguments.bytes();
  r.memory = std::make_shared<RegionTable>(regions);
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  EXPECT_EQ(outcome.counters.tensor, tiles);
  EXPECT_EQ(outcome.counters.tensor_multiply_adds, tiles * rows * columns * form.k);
}

void put_half(std::vector<uint32_t>& words, size_t word, uint32_t half, uint16_t bits) {
  words[word] |= static_cast<uint32_t>(bits) << (16 * half);
}

Fragments fragments_of(const Form& form, const std::vector<Tile>& tiles) {
  Fragments f;
  f.a.resize(tiles.size() * form.a_registers() * lanes);
  f.b.resize(tiles.size() * form.b_registers() * lanes);
  f.c.resize(tiles.size() * form.sum_registers() * lanes);
  for (size_t t = 0; t < tiles.size(); ++t) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (uint32_t i = 0; i < 2 * form.a_registers(); ++i) {
        const Place at = place_in_a(lane, i);
        put_half(f.a, (t * form.a_registers() + i / 2) * lanes + lane, i % 2, tiles[t].a[at.row * form.k + at.column]);
      }
      for (uint32_t i = 0; i < 2 * form.b_registers(); ++i) {
        const Place at = place_in_b(lane, i);
        put_half(f.b, (t * form.b_registers() + i / 2) * lanes + lane, i % 2, tiles[t].b[at.row * columns + at.column]);
      }
      for (uint32_t i = 0; i < 4; ++i) {
        const Place at = place_in_sums(lane, i);
        const uint32_t bits = tiles[t].c[at.row * columns + at.column];
        if (form.half_sums()) {
          put_half(f.c, (t * 2 + i / 2) * lanes + lane, i % 2, static_cast<uint16_t>(bits));
        } else {
          f.c[(t * 4 + i) * lanes + lane] = bits;
        }
      }
    }
  }
  return f;
}

uint32_t result_at(const Form& form, const Fragments& f, size_t tile, uint32_t lane, uint32_t i) {
  if (!form.half_sums()) return f.d[(tile * 4 + i) * lanes + lane];
  return f.d[(tile * 2 + i / 2) * lanes + lane] >> (16 * (i % 2)) & 0xFFFF;
}

/// All values of a 16-bit format.
const std::vector<float>& values_of(const Form& form) {
  const auto table = [](const SmallFormat& format) {
    std::vector<float> values(65536);
    for (uint32_t bits = 0; bits < values.size(); ++bits) {
      values[bits] = static_cast<float>(format.value(static_cast<uint16_t>(bits)));
    }
    return values;
  };
  static const std::vector<float> halves = table(half_format), bfloats = table(bfloat_format);
  return form.bfloats() ? bfloats : halves;
}

/// x rounded to f16, ties to even.
double to_half(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / step) * step;
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, x) : rounded;
}

/// Whether `bits` are the form's result where the sum, in f32, is `sum`. A NaN must be the canonical one.
bool is_result(const Form& form, uint32_t bits, float sum) {
  if (!form.half_sums()) return bits == (std::isnan(sum) ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(sum));
  if (std::isnan(sum)) return bits == 0x7FFF;
  const double wanted = to_half(sum), got = half_format.value(static_cast<uint16_t>(bits));
  return got == wanted && std::signbit(got) == std::signbit(wanted);
}

/// Expects that `tiles` give, on all units, their element of C and after it the products in the order of k.
void expect_products(const Form& form, const std::vector<Tile>& tiles) {
  const std::vector<float>& values = values_of(form);
  std::vector<float> sums;
  for (const Tile& tile : tiles) {
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t column = 0; column < columns; ++column) {
        const uint32_t c = tile.c[row * columns + column];
        float sum = form.half_sums() ? values[c] : std::bit_cast<float>(c);
        for (uint32_t k = 0; k < form.k; ++k) {
          sum = std::fma(values[tile.a[row * form.k + k]], values[tile.b[k * columns + column]], sum);
        }
        sums.push_back(sum);
      }
    }
  }
  Fragments fragments = fragments_of(form, tiles);
  for (const UnitTable* units : unit_tables()) {
    run_fragments(form, fragments, *units);
    int failures = 0;
    for (size_t t = 0; t < tiles.size(); ++t) {
      for (uint32_t lane = 0; lane < lanes && failures < 5; ++lane) {
        for (uint32_t i = 0; i < 4; ++i) {
          const Place at = place_in_sums(lane, i);
          const float sum = sums[(t * rows + at.row) * columns + at.column];
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

/// Bits of a value of 16 or 32 bits, drawn from all there are or from those at which arithmetic goes wrong.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  enum class Kind { usual, edges, extremes, any };

  uint16_t factor(const Form& form, Kind kind) {
    const uint16_t one = form.bfloats() ? 0x3F80 : 0x3C00;
    const uint16_t infinity = form.bfloats() ? bfloat_format.infinity : half_format.infinity;
    const auto sign = static_cast<uint16_t>(random_() % 2 << 15);
    const auto bits = static_cast<uint16_t>(random_());
    const uint16_t fraction = form.bfloats() ? 0x7F : 0x3FF;
    const auto quarter = static_cast<uint16_t>(one - 2 * (fraction + 1));
    if (kind == Kind::any) return bits;
    if (kind == Kind::usual) return sign | static_cast<uint16_t>(quarter + bits % (3 * (fraction + 1)));
    const std::array<uint16_t, 8> edges = {0,
                                           1,
                                           fraction,
                                           static_cast<uint16_t>(fraction + 1),
                                           one,
                                           static_cast<uint16_t>(one + 1),
                                           static_cast<uint16_t>(infinity - 1),
                                           static_cast<uint16_t>(one - 1)};
    if (kind == Kind::edges || bits % 8 != 0) return sign | edges[bits % edges.size()];
    return sign | static_cast<uint16_t>(infinity + (bits / 8 % 4 == 0 ? 1 + bits % fraction : 0));
  }

  uint32_t sum(const Form& form, Kind kind) {
    if (form.half_sums()) return factor(form, kind);
    const auto sign = static_cast<uint32_t>(random_() % 2) << 31, bits = static_cast<uint32_t>(random_());
    if (kind == Kind::any) return bits;
    if (kind == Kind::usual) return sign | (0x3E800000u + bits % 0x02000000u);
    const std::array<uint32_t, 8> edges = {0,          1,          0x007FFFFF, 0x00800000,
                                           0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x33800000};
    if (kind == Kind::edges || bits % 8 != 0) return sign | edges[bits % edges.size()];
    return sign | (0x7F800000u + (bits / 8 % 4 == 0 ? 1 + bits % 0x7FFFFF : 0));
  }

  Tile tile(const Form& form, Kind kind) {
    Tile tile;
    for (uint32_t k = 0; k < rows * form.k; ++k) tile.a.push_back(factor(form, kind));
    for (uint32_t k = 0; k < columns * form.k; ++k) tile.b.push_back(factor(form, kind));
    for (uint32_t k = 0; k < rows * columns; ++k) tile.c.push_back(sum(form, kind));
    return tile;
  }

 private:
  std::mt19937 random_;
};

TEST(MatrixProducts, AreWhatTheHostWorksOut) {
  constexpr uint32_t tiles_of_kind = 2500;
  for (const Form& form : forms) {
    Draw draw(38);
    std::vector<Tile> tiles;
    for (const Draw::Kind kind : {Draw::Kind::usual, Draw::Kind::edges, Draw::Kind::extremes, Draw::Kind::any}) {
      for (uint32_t t = 0; t < tiles_of_kind; ++t) tiles.push_back(draw.tile(form, kind));
    }
    expect_products(form, tiles);
  }
}

TEST(MatrixProducts, KeepEachElementApart) {
  // A has one element that is not 0, and B is all different: row and column of each place show in the result.
  for (const Form& form : forms) {
    std::vector<Tile> tiles;
    for (uint32_t place = 0; place < rows * form.k; ++place) {
      Tile tile;
      tile.a.assign(rows * form.k, 0);
      tile.a[place] = form.bfloats() ? 0x3F80 : 0x3C00;
      for (uint32_t k = 0; k < columns * form.k; ++k) {
        tile.b.push_back(form.bfloats() ? bfloat_format.encode(k + 1.0) : half_format.encode(k + 1.0));
      }
      tile.c.assign(rows * columns, 0);
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

const Form one_form = forms[3];

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
  EXPECT_EQ(barrier.kind, FaultKind::deadlock);
  EXPECT_THAT(barrier.report, HasSubstr("for lanes 0xffff0000, which have not come to this instruction"));
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

/// A kernel with the one form's product, for another target.
std::string for_target(const Form& form, const std::string& target) {
  std::string text = kernel_text(form);
  return text.replace(text.find("sm_90"), 5, target);
}

TEST(MatrixProducts, AreRefusedWhereTheTargetLacksThem) {
  for (const Form& form : forms) {
    const bool turing = form.shape == "m16n8k8" && !form.bfloats();
    load_program(for_target(form, "sm_80"));
    if (turing) {
      load_program(for_target(form, "sm_75"));
      EXPECT_THAT(load_error(for_target(form, "sm_72")), HasSubstr("needs .target sm_75 or higher: mma.sync"));
    } else {
      EXPECT_THAT(load_error(for_target(form, "sm_75")),
                  AllOf(HasSubstr("mma of shape ." + form.shape + " and these types needs .target sm_80 or higher"),
                        HasSubstr(form.opcode())));
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
      unwritten_results("%r12", 22), [](Place p) { return p.column == 5; }, rows);
  all_in(
      unwritten_results("%r13", 0), [](Place p) { return p.column == 0; }, rows);
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
