// mma: every form against products that the host works out element by element, with where the PTX ISA puts each.
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "core_small_floats.h"
#include "core_strict_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test::core_matrix_product_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t columns = 8, lanes = 32;

/// A form of mma.
struct Form {
  std::string shape, a, b, sum;
  uint32_t rows, k;
  bool saturates = false;
  bool half_sums() const { return sum == "f16"; }
  bool integers() const { return sum == "s32"; }
  uint32_t bits() const { return a == "tf32" ? 32 : a == "f16" || a == "bf16" ? 16 : 8; }
  uint32_t in_word() const { return 32 / bits(); }
  uint32_t a_registers() const { return rows * k * bits() / 32 / lanes; }
  uint32_t b_registers() const { return columns * k * bits() / 32 / lanes; }
  uint32_t lane_sums() const { return rows * columns / lanes; }
  uint32_t sum_registers() const { return lane_sums() / (half_sums() ? 2 : 1); }
  std::string opcode() const {
    return "mma.sync.aligned." + shape + ".row.col." + (saturates ? "satfinite." : "") + sum + "." + a + "." + b + "." +
           sum;
  }
};

std::vector<Form> all_forms() {
  std::vector<Form> forms = {{"m16n8k8", "f16", "f16", "f16", 16, 8},   {"m16n8k8", "f16", "f16", "f32", 16, 8},
                             {"m16n8k16", "f16", "f16", "f16", 16, 16}, {"m16n8k16", "f16", "f16", "f32", 16, 16},
                             {"m16n8k8", "bf16", "bf16", "f32", 16, 8}, {"m16n8k16", "bf16", "bf16", "f32", 16, 16},
                             {"m16n8k4", "tf32", "tf32", "f32", 16, 4}, {"m16n8k8", "tf32", "tf32", "f32", 16, 8}};
  for (const std::string a : {"s8", "u8"}) {
    for (const std::string b : {"s8", "u8"}) {
      for (const bool saturates : {false, true}) {
        forms.push_back({"m8n8k16", a, b, "s32", 8, 16, saturates});
        forms.push_back({"m16n8k16", a, b, "s32", 16, 16, saturates});
        forms.push_back({"m16n8k32", a, b, "s32", 16, 32, saturates});
      }
    }
  }
  for (const std::string a : {"e4m3", "e5m2"}) {
    for (const std::string b : {"e4m3", "e5m2"}) {
      for (const std::string sum : {"f16", "f32"}) {
        forms.push_back({"m16n8k16", a, b, sum, 16, 16});
        forms.push_back({"m16n8k32", a, b, sum, 16, 32});
      }
    }
  }
  return forms;
}

/// A place in a matrix.
struct Place {
  uint32_t row, column;
};

// The ISA's formulas for element i of a lane's fragment.
Place place_in_a(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t group = lane / 4, in_group = lane % 4;
  if (form.rows == 8) return {group, in_group * 4 + i};
  if (form.bits() == 32) return {i % 2 == 0 ? group : group + 8, i < 2 ? in_group : in_group + 4};
  if (form.bits() == 16) {
    return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  }
  return {i < 4 || (i >= 8 && i < 12) ? group : group + 8, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place place_in_b(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t group = lane / 4, in_group = lane % 4;
  if (form.bits() == 32) return {i == 0 ? in_group : in_group + 4, group};
  if (form.bits() == 16) return {in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
  return {in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
}
Place place_in_sums(uint32_t lane, uint32_t i) {
  return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)};
}

/// Operands of one product, as bits.
struct Tile {
  std::vector<uint32_t> a, b;  // [row][k], [k][column]
  std::vector<uint32_t> c;     // [row][column]
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
  EXPECT_EQ(outcome.counters.tensor_multiply_adds, tiles * form.rows * columns * form.k);
}

/// Puts element i of a lane's fragment of so many registers in its place.
void put(std::vector<uint32_t>& words, size_t first_register, uint32_t lane, uint32_t i, uint32_t bits,
         uint32_t element_bits) {
  const uint32_t in_word = 32 / element_bits;
  words[(first_register + i / in_word) * lanes + lane] |= bits << (element_bits * (i % in_word));
}

Fragments fragments_of(const Form& form, const std::vector<Tile>& tiles) {
  Fragments f;
  f.a.resize(tiles.size() * form.a_registers() * lanes);
  f.b.resize(tiles.size() * form.b_registers() * lanes);
  f.c.resize(tiles.size() * form.sum_registers() * lanes);
  for (size_t t = 0; t < tiles.size(); ++t) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (uint32_t i = 0; i < form.in_word() * form.a_registers(); ++i) {
        const Place at = place_in_a(form, lane, i);
        put(f.a, t * form.a_registers(), lane, i, tiles[t].a[at.row * form.k + at.column], form.bits());
      }
      for (uint32_t i = 0; i < form.in_word() * form.b_registers(); ++i) {
        const Place at = place_in_b(form, lane, i);
        put(f.b, t * form.b_registers(), lane, i, tiles[t].b[at.row * columns + at.column], form.bits());
      }
      for (uint32_t i = 0; i < form.lane_sums(); ++i) {
        const Place at = place_in_sums(lane, i);
        put(f.c, t * form.sum_registers(), lane, i, tiles[t].c[at.row * columns + at.column],
            form.half_sums() ? 16 : 32);
      }
    }
  }
  return f;
}

uint32_t result_at(const Form& form, const Fragments& f, size_t tile, uint32_t lane, uint32_t i) {
  if (!form.half_sums()) return f.d[(tile * form.sum_registers() + i) * lanes + lane];
  return f.d[(tile * form.sum_registers() + i / 2) * lanes + lane] >> (16 * (i % 2)) & 0xFFFF;
}

/// Sign, exponent of the given bias, fraction; the largest exponent is of infinities and NaN, in e4m3 a NaN only with
/// all bits.
double small_float(uint32_t bits, int fraction_bits, int bias) {
  const uint32_t magnitude = bits & 0x7F;
  const double sign = bits >= 0x80 ? -1 : 1;
  const int exponent = static_cast<int>(magnitude >> fraction_bits);
  const int fraction = static_cast<int>(magnitude & ((1u << fraction_bits) - 1));
  if (fraction_bits == 3 && magnitude == 0x7F) return NAN;
  if (fraction_bits == 2 && exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits));
}

double value_of(const std::string& type, uint32_t bits) {
  if (type == "f16") return half_format.value(static_cast<uint16_t>(bits));
  if (type == "bf16") return bfloat_format.value(static_cast<uint16_t>(bits));
  if (type == "tf32") return std::bit_cast<float>(bits & ~0x1FFFu);
  if (type == "f32") return std::bit_cast<float>(bits);
  if (type == "s8") return static_cast<int8_t>(bits);
  if (type == "u8") return static_cast<uint8_t>(bits);
  if (type == "s32") return static_cast<int32_t>(bits);
  return type == "e4m3" ? small_float(bits, 3, 7) : small_float(bits, 2, 15);
}

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

/// Numbers of a type: 1, the smallest normal one, infinity or what is beyond the largest number, the bits of fractions.
struct Landmarks {
  uint32_t one, normal, infinity, fraction, sign;
};

Landmarks landmarks_of(const std::string& type) {
  if (type == "f16") return {0x3C00, 0x0400, 0x7C00, 0x3FF, 0x8000};
  if (type == "bf16") return {0x3F80, 0x0080, 0x7F80, 0x7F, 0x8000};
  if (type == "e4m3") return {0x38, 0x08, 0x7F, 7, 0x80};
  if (type == "e5m2") return {0x3C, 0x04, 0x7C, 3, 0x80};
  return {0x3F800000, 0x00800000, 0x7F800000, 0x7FFFFF, 0x80000000};
}

/// Draws bits of elements: all there are, or those at which arithmetic goes wrong.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  enum class Kind { usual, edges, extremes, any };

  uint32_t element(const std::string& type, Kind kind) {
    const auto bits = static_cast<uint32_t>(random_());
    if (type == "s8" || type == "u8") {
      const std::array<uint32_t, 4> edges = {0, 0x7F, 0x80, 0xFF};
      return kind == Kind::edges ? edges[bits % edges.size()] : bits & 0xFF;
    }
    if (type == "s32") {
      const std::array<uint32_t, 6> edges = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFF0000};
      return kind == Kind::any ? bits : kind == Kind::usual ? bits % 1000 : edges[bits % edges.size()];
    }
    const Landmarks marks = landmarks_of(type);
    if (kind == Kind::any) return bits & (2 * marks.sign - 1);
    const uint32_t sign = bits / 3 % 2 == 0 ? 0 : marks.sign;
    const auto other = static_cast<uint32_t>(random_());
    if (kind == Kind::usual) return sign | (marks.one - 2 * (marks.fraction + 1) + other % (3 * (marks.fraction + 1)));
    const std::array<uint32_t, 8> edges = {
        0, 1, marks.fraction, marks.normal, marks.one, marks.one + 1, marks.one - 1, marks.infinity - 1};
    if (kind == Kind::edges || bits % 8 != 0) return sign | edges[other % edges.size()];
    return sign | (marks.infinity + (other % 4 == 0 && marks.infinity != 0x7F ? 1 + other % marks.fraction : 0));
  }

  Tile tile(const Form& form, Kind kind) {
    Tile tile;
    for (uint32_t k = 0; k < form.rows * form.k; ++k) tile.a.push_back(element(form.a, kind));
    for (uint32_t k = 0; k < columns * form.k; ++k) tile.b.push_back(element(form.b, kind));
    for (uint32_t k = 0; k < form.rows * columns; ++k) tile.c.push_back(element(form.sum, kind));
    return tile;
  }

 private:
  std::mt19937 random_;
};

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

/// The first target that ptxas accepts the form for.
int first_target(const Form& form) {
  if (form.a == "e4m3" || form.a == "e5m2") return 89;
  return form.rows == 8 || (form.a == "f16" && form.k == 8) ? 75 : 80;
}

TEST(MatrixProducts, AreRefusedWhereTheTargetLacksThem) {
  for (const Form& form : all_forms()) {
    const int first = first_target(form);
    for (const int target : {72, 75, 80, 86, 89, 90}) {
      const std::string text = for_target(form, "sm_" + std::to_string(target));
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
