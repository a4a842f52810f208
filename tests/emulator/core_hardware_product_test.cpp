// mma as chips compute it: every form of floating-point numbers against exact integers, and cases that are known of
// chips.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "compared_tiles.h"
#include "core_fixture.h"
#include "core_run_fragments.h"
#include "core_small_floats.h"

namespace kiln::emulator::test::core_hardware_product_test {
namespace {

using namespace testing_support::mma;

/// Bits of a format: exponent bias and bits of the fraction, of `bits` bits.
struct Layout {
  int bits, fraction, bias;
};

Layout layout_of(const std::string& type) {
  if (type == "f16") return {16, 10, 15};
  if (type == "bf16") return {16, 7, 127};
  if (type == "e4m3") return {8, 3, 7};
  if (type == "e5m2") return {8, 2, 15};
  return {32, 23, 127};
}

/// significand * 2^lowest, negative or not. `exponent`: that of the leading digit of a normal number.
struct Number {
  bool nan = false, infinite = false, negative = false;
  int64_t significand = 0;
  int lowest = 0, exponent = 0;
};

Number number_of(const std::string& type, uint32_t bits) {
  if (type == "tf32") bits &= ~0x1FFFu;
  const Layout layout = layout_of(type);
  const int exponent_bits = layout.bits - 1 - layout.fraction, largest = (1 << exponent_bits) - 1;
  const int biased = static_cast<int>(bits >> layout.fraction) & largest;
  const int64_t fraction = bits & ((int64_t{1} << layout.fraction) - 1);
  Number x;
  x.negative = (bits >> (layout.bits - 1) & 1) != 0;
  x.significand = biased == 0 ? fraction : fraction | int64_t{1} << layout.fraction;
  x.exponent = std::max(biased, 1) - layout.bias;
  x.lowest = x.exponent - layout.fraction;
  if (type == "e4m3") {
    x.nan = (bits & 0x7F) == 0x7F;
  } else if (biased == largest) {
    x.nan = fraction != 0;
    x.infinite = fraction == 0;
  }
  return x;
}

/// The number as f16 has it: the denormal ones of bytes with larger exponents are normal.
Number in_half(Number x) {
  if (x.significand != 0)
    x.exponent = std::max(x.lowest + static_cast<int>(std::bit_width(static_cast<uint64_t>(x.significand))) - 1, -14);
  return x;
}

Number product_of(const Number& a, const Number& b) {
  const bool zero_times_infinity = (a.infinite && b.significand == 0) || (b.infinite && a.significand == 0);
  return {.nan = a.nan || b.nan || zero_times_infinity,
          .infinite = a.infinite || b.infinite,
          .negative = a.negative != b.negative,
          .significand = a.significand * b.significand,
          .lowest = a.lowest + b.lowest,
          .exponent = a.exponent + b.exponent};
}

/// Arithmetic of a chip for factors of a type, as the head of hardware_product.cpp says.
struct Chip {
  uint32_t products;  // of a step
  int fraction_bits, zero_exponent;
  int result_fraction = 23;
  bool converts = false;
};

Chip chip_of(int capability, const Form& form) {
  const uint32_t factor_bytes = form.bits() / 8;
  if (capability >= 90) {
    const bool converts = factor_bytes == 1 && capability < 120;
    return {std::min(form.k, 32 / factor_bytes) / (converts ? 2 : 1), 25, -133, 23, converts};
  }
  if (factor_bytes == 1) return {16, 13, -132, 13};
  return {16 / factor_bytes, 24, -132};
}

/// |sum| * 2^unit as f32 with so many bits of fraction, toward zero.
uint32_t to_f32(int64_t sum, int unit, int fraction) {
  const auto size = static_cast<uint64_t>(std::abs(sum));
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  if (size == 0) return sign;
  const int top = unit + static_cast<int>(std::bit_width(size)) - 1;
  if (top > 127) return sign | 0x7F800000u;
  const int lowest = std::max(top, -126) - fraction, shift = lowest - unit;
  const uint64_t kept = shift > 63 ? 0 : shift > 0 ? size >> shift : size << -shift;
  const auto in_f32 = static_cast<uint32_t>(kept << (23 - fraction));  // units of 2^(max(top, -126) - 23)
  return sign | (in_f32 + (static_cast<uint32_t>(std::max(top, -126) + 126) << 23));
}

/// |sum| * 2^unit as f16, to nearest, ties to even.
uint32_t to_f16(int64_t sum, int unit) {
  const auto size = static_cast<uint64_t>(std::abs(sum));
  const uint32_t sign = sum < 0 ? 0x8000u : 0;
  if (size == 0) return sign;
  const int top = std::max(unit + static_cast<int>(std::bit_width(size)) - 1, -14), shift = top - 10 - unit;
  if (top > 15) return sign | 0x7C00;
  uint64_t kept = shift > 63 ? 0 : shift > 0 ? size >> shift : size << -shift;
  if (shift > 0 && shift < 64) {
    const uint64_t rest = size - (kept << shift), half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && kept % 2 != 0)) ++kept;
  }
  return sign | std::min<uint32_t>(static_cast<uint32_t>(kept) + (static_cast<uint32_t>(top + 14) << 10), 0x7C00);
}

/// The result of a step over these terms, as bits of f32 or f16.
uint32_t step_of(const std::vector<Number>& terms, const Chip& chip, bool half) {
  const uint32_t infinity = half ? 0x7C00 : 0x7F800000, sign = half ? 0x8000 : 0x80000000;
  bool nan = false, up = false, down = false;
  int largest = -10000;
  for (const Number& term : terms) {
    nan = nan || term.nan;
    up = up || (term.infinite && !term.negative);
    down = down || (term.infinite && term.negative);
    largest = std::max(largest, term.significand == 0 ? chip.zero_exponent : term.exponent);
  }
  if (nan || (up && down)) return half ? 0x7FFF : 0x7FFFFFFF;
  if (up || down) return infinity | (down ? sign : 0);
  const int unit = largest - chip.fraction_bits;
  int64_t sum = 0;
  for (const Number& term : terms) {
    const int shift = term.lowest - unit;
    const int64_t aligned = shift >= 0 ? term.significand << shift : shift > -64 ? term.significand >> -shift : 0;
    sum += term.negative ? -aligned : aligned;
  }
  const uint32_t result = half ? to_f16(sum, unit) : to_f32(sum, unit, chip.result_fraction);
  return result == sign ? 0 : result;
}

/// Sum of two results, to nearest.
uint32_t nearest_sum(uint32_t x, uint32_t y, bool half) {
  if (half) return half_format.add(static_cast<uint16_t>(x), static_cast<uint16_t>(y));
  const float sum = std::bit_cast<float>(x) + std::bit_cast<float>(y);
  return sum != sum ? 0x7FFFFFFF : std::bit_cast<uint32_t>(sum);
}

/// Bits of an element of the product.
uint32_t expected(const Form& form, int capability, const Tile& tile, uint32_t row, uint32_t column) {
  const Chip chip = chip_of(capability, form);
  const uint32_t c = tile.c[row * columns + column];
  const auto factor = [&](const std::string& type, uint32_t bits) {
    return chip.converts ? in_half(number_of(type, bits)) : number_of(type, bits);
  };
  uint32_t result = chip.converts ? 0 : c;
  for (uint32_t step = 0; step < form.k / chip.products; ++step) {
    std::vector<Number> terms = {number_of(form.sum, result)};
    for (uint32_t k = 0; k < form.k; ++k) {
      if ((chip.converts ? k % 4 / 2 : k / chip.products) != step) continue;
      terms.push_back(
          product_of(factor(form.a, tile.a[row * form.k + k]), factor(form.b, tile.b[k * columns + column])));
    }
    result = step_of(terms, chip, form.half_sums());
  }
  return chip.converts ? nearest_sum(c, result, form.half_sums()) : result;
}

std::vector<Form> floating_forms() {
  std::vector<Form> forms = all_forms();
  std::erase_if(forms, [](const Form& form) { return form.integers(); });
  return forms;
}

/// Capabilities whose chips differ, of those that have the form.
std::vector<int> capabilities_of(const Form& form) {
  if (form.bits() == 8) return {89, 90, 100, 120};
  if (form.a == "f16" && form.k == 8) return {75, 80, 86, 89, 90, 100, 120};
  return {80, 86, 89, 90, 100, 120};
}

void expect_hardware(const Form& form, int capability, const std::vector<Tile>& tiles) {
  std::vector<uint32_t> wanted;
  for (const Tile& tile : tiles) {
    for (uint32_t row = 0; row < form.rows; ++row) {
      for (uint32_t column = 0; column < columns; ++column) {
        wanted.push_back(expected(form, capability, tile, row, column));
      }
    }
  }
  Fragments fragments = fragments_of(form, tiles);
  for (const UnitTable* units : unit_tables()) {
    run_fragments(form, fragments, *units, capability);
    int failures = 0;
    for (size_t t = 0; t < tiles.size() && failures < 5; ++t) {
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        for (uint32_t i = 0; i < form.lane_sums(); ++i) {
          const Place at = place_in_sums(lane, i);
          const uint32_t want = wanted[(t * form.rows + at.row) * columns + at.column];
          const uint32_t got = result_at(form, fragments, t, lane, i);
          if (got == want) continue;
          ++failures;
          ADD_FAILURE() << units->name << ", " << form.opcode() << " on " << capability << ", tile " << t << ", row "
                        << at.row << ", column " << at.column << std::hex << ": " << got << " for " << want;
        }
      }
    }
  }
}

TEST(HardwareProducts, AreThoseOfExactIntegers) {
  for (const Form& form : floating_forms()) {
    for (const int capability : capabilities_of(form)) {
      Draw draw(static_cast<uint32_t>(capability));
      std::vector<Tile> tiles;
      for (const Draw::Kind kind : {Draw::Kind::usual, Draw::Kind::edges, Draw::Kind::extremes, Draw::Kind::any}) {
        for (int t = 0; t < 8; ++t) tiles.push_back(draw.tile(form, kind));
      }
      expect_hardware(form, capability, tiles);
    }
  }
}

// Digests of device_tensor_test on an H100: those of drawn numbers for all forms. No card has multiplied the probes
// yet; its lines for them can be added to the file.
TEST(HardwareProducts, HaveTheBitsOfAnH100) {
  std::map<std::string, Form> forms;
  for (const Form& form : all_forms()) forms.emplace(form.opcode(), form);
  std::ifstream file(KILN_SOURCE_DIR "/tests/emulator/products_h100.txt");
  std::set<std::string> compared;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string word, opcode;
    uint32_t digest = 0;
    ASSERT_TRUE(words >> word >> opcode >> std::hex >> digest) << line;
    ASSERT_TRUE(forms.contains(opcode)) << line;
    for (const TileSet& set : compared_tiles(forms.at(opcode))) {
      if (set.word != word) continue;
      Fragments fragments = fragments_of(forms.at(opcode), set.tiles);
      run_fragments(forms.at(opcode), fragments, unit_table(), 90);
      EXPECT_EQ(digest_of(fragments.d), digest) << line;
      compared.insert(word + " " + opcode);
    }
    EXPECT_TRUE(compared.contains(word + " " + opcode)) << "no such tiles: " << line;
  }
  for (const auto& [opcode, form] : forms) EXPECT_TRUE(compared.contains("bits " + opcode)) << opcode;
}

/// Products by k, and C, of element (0, 0); everything else is 0.
struct Case {
  std::vector<std::pair<uint32_t, std::pair<double, double>>> factors;
  double c = 0;
};

/// Bits of a number that the type holds.
uint32_t bits_of(const std::string& type, double x) {
  const auto wide = std::bit_cast<uint32_t>(static_cast<float>(x));
  if (type == "f32" || type == "tf32") return wide;
  if (type == "bf16") return wide >> 16;
  if (type == "f16") return half_format.encode(x);
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const Number known = number_of(type, bits);
    if (known.nan || known.infinite) continue;
    if ((known.negative ? -1 : 1) * std::ldexp(static_cast<double>(known.significand), known.lowest) == x) return bits;
  }
  ADD_FAILURE() << type << " has no " << x;
  return 0;
}

/// Bits of element (0, 0), on a chip of `capability`; 0: by the chain of fused multiply-adds.
uint32_t result_of(const Form& form, const Case& known, int capability) {
  Tile tile;
  tile.a.assign(form.rows * form.k, 0);
  tile.b.assign(form.k * columns, 0);
  tile.c.assign(form.rows * columns, 0);
  for (const auto& [k, factors] : known.factors) {
    tile.a[k] = bits_of(form.a, factors.first);
    tile.b[k * columns] = bits_of(form.b, factors.second);
  }
  tile.c[0] = bits_of(form.sum, known.c);
  Fragments fragments = fragments_of(form, {tile});
  run_fragments(form, fragments, unit_table(), capability);
  return result_at(form, fragments, 0, 0, 0);
}

float wide_result(const Form& form, const Case& known, int capability) {
  return std::bit_cast<float>(result_of(form, known, capability));
}

/// `count` products of x * y from k = first on.
std::vector<std::pair<uint32_t, std::pair<double, double>>> repeated(uint32_t first, uint32_t count, double x,
                                                                     double y) {
  std::vector<std::pair<uint32_t, std::pair<double, double>>> factors;
  for (uint32_t k = first; k < first + count; ++k) factors.push_back({k, {x, y}});
  return factors;
}

const Form short_half = {"m16n8k8", "f16", "f16", "f32", 16, 8}, half = {"m16n8k16", "f16", "f16", "f32", 16, 16};
const Form half_sums = {"m16n8k8", "f16", "f16", "f16", 16, 8}, bfloat = {"m16n8k8", "bf16", "bf16", "f32", 16, 8};
const Form tf32 = {"m16n8k8", "tf32", "tf32", "f32", 16, 8}, fine = {"m16n8k32", "e4m3", "e4m3", "f32", 16, 32};
const Form mixed = {"m16n8k16", "e4m3", "e5m2", "f32", 16, 16};

TEST(HardwareProducts, LoseWhatIsBelowTheFractionOfTheLargestTerm) {
  const Case two = {repeated(0, 2, 0x1p-12, 0x1p-12), 1}, four = {repeated(0, 4, 0x1p-12, 0x1p-13), 1};
  const Case eight = {repeated(0, 8, 0x1p-13, 0x1p-13), 1};
  EXPECT_EQ(wide_result(short_half, two, 0), 1);  // ties to even, twice
  for (const int capability : {75, 80, 89, 90, 120}) {
    EXPECT_EQ(wide_result(short_half, two, capability), 1 + 0x1p-23f) << capability;
    EXPECT_EQ(wide_result(short_half, four, capability), capability < 90 ? 1 : 1 + 0x1p-23f) << capability;
    EXPECT_EQ(wide_result(short_half, eight, capability), 1) << capability;
  }
  // Cancelling products show the last bit that is kept.
  for (const auto& [small, kept_before_hopper, kept_since] :
       {std::tuple{0x1p-24, true, true}, {0x1p-25, false, true}, {0x1p-26, false, false}}) {
    const Case cancelling = {{{0, {1, 1}}, {1, {1, -1}}, {2, {small * 0x1p12, 0x1p-12}}}, 0};
    EXPECT_EQ(wide_result(short_half, cancelling, 0), small);
    for (const int capability : {75, 80, 89}) {
      EXPECT_EQ(wide_result(short_half, cancelling, capability), kept_before_hopper ? small : 0) << capability;
    }
    for (const int capability : {90, 120}) {
      EXPECT_EQ(wide_result(short_half, cancelling, capability), kept_since ? small : 0) << capability;
    }
  }
}

TEST(HardwareProducts, AlignToExponentsOfFactors) {
  // 1.5 * 1.5 is 2.25, but counts with exponent 0.
  const Case known = {{{0, {1.5, 1.5}}, {1, {1.5, -1.5}}}, 0x1p-24};
  EXPECT_EQ(wide_result(short_half, known, 75), 0x1p-24f);
  EXPECT_EQ(wide_result(short_half, {{{0, {2, 1.125}}, {1, {2, -1.125}}}, 0x1p-24}, 75), 0);
}

TEST(HardwareProducts, TruncateToF32AndRoundToHalf) {
  for (const double sign : {1.0, -1.0}) {
    const Case known = {{{0, {sign * 1.5 * 0x1p-12, 0x1p-12}}}, sign};  // three quarters of a unit in the last place
    EXPECT_EQ(wide_result(short_half, known, 0), sign * (1 + 0x1p-23f));
    for (const int capability : {75, 80, 90}) EXPECT_EQ(wide_result(short_half, known, capability), sign);
    EXPECT_EQ(result_of(half_sums, {{{0, {sign * 1.5 * 0x1p-6, 0x1p-5}}}, sign}, 75),
              bits_of("f16", sign * (1 + 0x1p-10)));
  }
  // Ties to even in f16: 1 + 2^-11, and 1 + 2^-10 + 2^-11.
  EXPECT_EQ(result_of(half_sums, {{{0, {0x1p-6, 0x1p-5}}}, 1}, 75), bits_of("f16", 1));
  EXPECT_EQ(result_of(half_sums, {{{0, {0x1p-6, 0x1p-5}}}, 1 + 0x1p-10}, 75), bits_of("f16", 1 + 0x1p-9));
}

TEST(HardwareProducts, AddInStepsAlongK) {
  // Halves of a last place: together they count, apart they are lost.
  const auto two = [](uint32_t second) { return Case{{{0, {0x1p-12, 0x1p-12}}, {second, {0x1p-12, 0x1p-12}}}, 1}; };
  for (const uint32_t second : {1u, 7u, 8u, 15u}) {
    for (const int capability : {80, 89, 90, 120}) {
      const bool together = capability >= 90 || second < 8;
      EXPECT_EQ(wide_result(half, two(second), capability), together ? 1 + 0x1p-23f : 1);
    }
  }
  for (const uint32_t second : {1u, 3u, 4u, 7u}) {
    for (const int capability : {80, 89, 90, 120}) {
      const bool together = capability >= 90 || second < 4;
      EXPECT_EQ(wide_result(tf32, two(second), capability), together ? 1 + 0x1p-23f : 1);
    }
  }
  // On 8.9 a small product survives large ones that cancel in a step before.
  for (const uint32_t second : {1u, 15u, 16u, 31u}) {
    const Case known = {{{0, {16, 16}}, {second, {16, -16}}, {17, {0x1p-6, 1}}}, 0};
    EXPECT_EQ(wide_result(fine, known, 89), second < 16 ? 0x1p-6f : 0) << second;
    EXPECT_EQ(wide_result(fine, known, 120), 0x1p-6f) << second;
  }
}

TEST(HardwareProducts, DoNotDependOnTheOrderWithinAStep) {
  Draw draw(7);
  for (const auto& [form, capability] : {std::pair{half, 80}, {half, 90}, {fine, 120}}) {
    const uint32_t step = chip_of(capability, form).products;
    const Tile tile = draw.tile(form, Draw::Kind::usual);
    Tile turned = tile;
    for (uint32_t k = 0; k < form.k; ++k) {
      const uint32_t from = k / step * step + (k + 1) % step;
      for (uint32_t row = 0; row < form.rows; ++row) turned.a[row * form.k + k] = tile.a[row * form.k + from];
      for (uint32_t n = 0; n < columns; ++n) turned.b[k * columns + n] = tile.b[from * columns + n];
    }
    Fragments fragments = fragments_of(form, {tile, turned});
    run_fragments(form, fragments, unit_table(), capability);
    const auto equal = [&] {
      const auto second = fragments.d.begin() + static_cast<std::ptrdiff_t>(fragments.d.size() / 2);
      return std::equal(fragments.d.begin(), second, second);
    };
    EXPECT_TRUE(equal()) << form.opcode() << " on " << capability;
    run_fragments(form, fragments, unit_table());
    EXPECT_FALSE(equal()) << "the order does not show in these products";
  }
}

TEST(HardwareProducts, OfBytesKeepThirteenBitsOnAda) {
  EXPECT_EQ(wide_result(fine, {{}, 1 + 0x1p-20}, 89), 1);
  EXPECT_EQ(wide_result(fine, {{}, 1 + 0x1p-20}, 120), 1 + 0x1p-20f);
  EXPECT_EQ(wide_result(fine, {{{0, {0x1p-7, 0x1p-6}}}, 1}, 89), 1 + 0x1p-13f);
  EXPECT_EQ(wide_result(fine, {{{0, {0x1p-7, 0x1p-7}}}, 1}, 89), 1);
  EXPECT_EQ(wide_result(fine, {repeated(0, 16, 1.875, 1.875), 0x1p-20}, 89), 16 * 3.515625f);
  // 2^7 + 2^-7 has 14 bits of fraction: the sum in between holds it, the result does not.
  EXPECT_EQ(wide_result(fine, {{{0, {8, 8}}, {1, {8, 8}}, {2, {0x1p-4, 0x1p-3}}}, 0}, 89), 128);
}

TEST(HardwareProducts, OfBytesAreProductsOfHalvesOnHopper) {
  // C comes last, to nearest: 256 and three quarters of its last place.
  const Case rounded = {{{0, {0x1p-8, 1.5 * 0x1p-8}}}, 256};
  EXPECT_EQ(wide_result(fine, rounded, 90), 256 + 0x1p-15f);
  EXPECT_EQ(wide_result(fine, rounded, 100), 256 + 0x1p-15f);
  EXPECT_EQ(wide_result(fine, rounded, 120), 256);
  // Bytes 0 and 1 of each word are in the first step, 2 and 3 in the second.
  const auto with_small_at = [](uint32_t second, uint32_t small) {
    return Case{{{0, {256, 256}}, {second, {256, -256}}, {small, {0x1p-6, 0x1p-4}}}, 0};
  };
  for (const int capability : {90, 100}) {
    EXPECT_EQ(wide_result(fine, with_small_at(29, 2), capability), 0x1p-10f);  // after the large ones have gone
    EXPECT_EQ(wide_result(fine, with_small_at(2, 29), capability), 0);         // beside one of them
    EXPECT_EQ(wide_result(fine, with_small_at(29, 4), capability), 0);
  }
  EXPECT_EQ(wide_result(fine, with_small_at(29, 2), 120), 0);
  // The smallest number of e4m3 has its own exponent, -9, in f16: 2^5 - 2^5 keeps 2^-20 beside it, 2^8 would not.
  const Case denormal = {{{0, {0x1p-9, 0x1p14}}, {1, {0x1p-9, -0x1p14}}, {4, {0x1p-6, 0x1p-14}}}, 0};
  for (const int capability : {90, 100}) EXPECT_EQ(wide_result(mixed, denormal, capability), 0x1p-20f) << capability;
  EXPECT_EQ(wide_result(mixed, denormal, 120), 0);
}

TEST(HardwareProducts, TruncateFactorsOfTf32) {
  EXPECT_EQ(wide_result(tf32, {{{0, {1 + 0x1p-10 + 0x1.ffcp-11, 1}}}, 0}, 80), 1 + 0x1p-10f);
  EXPECT_EQ(wide_result(tf32, {{{0, {-0x1.fffffep-1, 1}}}, 0}, 90), -0x1.ffcp-1f);
}

TEST(HardwareProducts, HaveInfinitiesAndOneNaN) {
  const double largest = 0x1.fffffep127, infinity = HUGE_VAL;
  for (const int capability : {80, 90}) {
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p127, 0x1p-30}}}, largest}, capability), 0x1.fffffep127f);
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p127, 1}}}, largest}, capability), HUGE_VALF);
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p127, -0x1p127}}}, 1}, capability), -HUGE_VALF);
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p127, 0x1p127}}, {1, {-0x1p127, 0x1p127}}}, 0}, capability), 0);
    EXPECT_EQ(result_of(bfloat, {{{0, {infinity, 1}}}, -infinity}, capability), 0x7FFFFFFFu);
    EXPECT_EQ(result_of(bfloat, {{{0, {infinity, 0}}}, 1}, capability), 0x7FFFFFFFu);
    EXPECT_EQ(result_of(bfloat, {{}, -NAN}, capability), 0x7FFFFFFFu);
    EXPECT_EQ(result_of(half_sums, {{{0, {256, 256}}}, 0}, capability), 0x7C00u);
    EXPECT_EQ(result_of(half_sums, {{{0, {infinity, 0}}}, 0}, capability), 0x7FFFu);
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p-133, 0x1p-16}}}, 0}, capability), 0x1p-149f);
    EXPECT_EQ(wide_result(bfloat, {{{0, {0x1p-133, 0x1p-16}}}, -0x1p-149}, capability), 0);
  }
}

TEST(HardwareProducts, HaveNoNegativeZero) {
  for (const int capability : {80, 90}) {
    EXPECT_EQ(result_of(tf32, {repeated(0, 8, -0.0, 1), -0.0}, capability), 0u);
    EXPECT_EQ(result_of(bfloat, {repeated(0, 1, -0x1p-100, 0x1p-100), -0.0}, capability), 0u);
    EXPECT_EQ(result_of(half_sums, {repeated(0, 1, -0x1p-14, 0x1p-14), -0.0}, capability), 0u);
  }
}

TEST(HardwareProducts, KeepBitsBelowDenormalResults) {
  // C is 0, which counts as 2^-132 and 2^-133: bits down to 2^-156 and 2^-158 turn 2^-149 into less, which becomes 0.
  const auto with_less = [](double less, int capability) {
    return wide_result(bfloat, {{{0, {0x1p-133, 0x1p-16}}, {1, {-0x1p-133, less * 0x1p133}}}, 0}, capability);
  };
  EXPECT_EQ(with_less(0x1p-156, 80), 0);
  EXPECT_EQ(with_less(0x1p-157, 80), 0x1p-149f);
  EXPECT_EQ(with_less(0x1p-158, 90), 0);
  EXPECT_EQ(with_less(0x1p-159, 90), 0x1p-149f);
}

TEST(HardwareProducts, OfIntegersAreExact) {
  for (const Form& form : all_forms()) {
    if (!form.integers()) continue;
    Draw draw(5);
    std::vector<Tile> tiles;
    for (int t = 0; t < 20; ++t) tiles.push_back(draw.tile(form, Draw::Kind::any));
    Fragments chain = fragments_of(form, tiles), hardware = chain;
    run_fragments(form, chain, unit_table());
    run_fragments(form, hardware, unit_table(), 80);
    EXPECT_EQ(chain.d, hardware.d) << form.opcode();
  }
}

}  // namespace
}  // namespace kiln::emulator::test::core_hardware_product_test
