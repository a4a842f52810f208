// f16, bf16 and their pairs: arithmetic with one rounding, on every unit set, against IEEE 754 written out.
#include <functional>

#include "core_evaluate.h"
#include "core_small_floats.h"

namespace kiln::emulator::test::core_half_test {
namespace {

struct Kind {
  const char* name;
  const SmallFormat* format;
  std::vector<uint16_t> values;
};
const Kind kinds[] = {
    {"f16", &half_format, {0x0000, 0x8000, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x0001, 0x8001, 0x03FF, 0x0400, 0x8400,
                           0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFDFF, 0x3555, 0xB266, 0x1400, 0x6BFF, 0x2E66}},
    {"bf16", &bfloat_format, {0x0000, 0x8000, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x0001, 0x8001, 0x007F, 0x0080, 0x8080,
                              0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFF81, 0x3EAB, 0xC2F7, 0x1F80, 0x2081, 0x5FB5}},
};

using Unary = std::function<uint16_t(uint16_t)>;
using Binary = std::function<uint16_t(uint16_t, uint16_t)>;
using Ternary = std::function<uint16_t(uint16_t, uint16_t, uint16_t)>;

bool same_half(const SmallFormat& format, uint16_t x, uint16_t y) {
  return x == y || (format.is_nan(x) && format.is_nan(y));
}
bool same_pair(const SmallFormat& format, uint32_t x, uint32_t y) {
  return same_half(format, static_cast<uint16_t>(x), static_cast<uint16_t>(y)) &&
         same_half(format, static_cast<uint16_t>(x >> 16), static_cast<uint16_t>(y >> 16));
}

/// Columns of halves as columns of pairs: each row beside the one 7 further on.
std::vector<std::vector<uint64_t>> paired(std::vector<std::vector<uint64_t>> columns) {
  for (auto& column : columns) {
    const auto halves = column;
    for (size_t k = 0; k < column.size(); ++k) column[k] |= halves[(k + 7) % halves.size()] << 16;
  }
  return columns;
}

/// `word` names the instruction without its type: "add.rn" becomes "add.rn.f16 d, a, b;" and "add.rn.f16x2 d, a, b;".
template <class... S, class Oracle>
void expect_halves(const Kind& kind, const std::string& word, const std::string& operands, Oracle oracle,
                   const std::vector<S>&... values) {
  const SmallFormat& format = *kind.format;
  const auto columns = combinations(values...);
  expect_instruction<uint16_t, S...>(
      word + "." + kind.name + " d, " + operands + ";", oracle,
      [&](uint16_t x, uint16_t y) { return same_half(format, x, y); }, columns);
  const auto both = [&](auto... pair) {
    const uint32_t low = oracle(static_cast<uint16_t>(pair)...);
    const uint32_t high = oracle(static_cast<uint16_t>(pair >> 16)...);
    return low | high << 16;
  };
  expect_instruction<uint32_t, std::conditional_t<true, uint32_t, S>...>(
      word + "." + kind.name + "x2 d, " + operands + ";", both,
      [&](uint32_t x, uint32_t y) { return same_pair(format, x, y); }, paired(columns));
}

uint16_t flushed(const SmallFormat& format, uint16_t x) {
  return format.is_subnormal(x) ? static_cast<uint16_t>(x & 0x8000) : x;
}
/// .sat: to [+0, 1], NaN to +0.
uint16_t saturated(const SmallFormat& format, uint16_t x) {
  if (format.is_nan(x) || (x & 0x8000) != 0) return 0;
  const uint16_t one = format.encode(1.0);
  return x > one ? one : x;
}
uint16_t without_negatives(const SmallFormat& format, uint16_t x) {
  return !format.is_nan(x) && (x & 0x8000) != 0 ? 0 : x;
}

TEST(Halves, SumsDifferencesAndProductsAreRoundedOnce) {
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    const Binary add = [&](uint16_t a, uint16_t b) { return f.add(a, b); };
    const Binary sub = [&](uint16_t a, uint16_t b) { return f.sub(a, b); };
    const Binary mul = [&](uint16_t a, uint16_t b) { return f.mul(a, b); };
    expect_halves(kind, "add.rn", "a, b", add, kind.values, kind.values);
    expect_halves(kind, "sub.rn", "a, b", sub, kind.values, kind.values);
    expect_halves(kind, "mul.rn", "a, b", mul, kind.values, kind.values);
  }
}

TEST(Halves, MultiplyAddIsFused) {
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    const Ternary fma = [&](uint16_t a, uint16_t b, uint16_t c) { return f.fma(a, b, c); };
    const Ternary relu = [&](uint16_t a, uint16_t b, uint16_t c) { return without_negatives(f, f.fma(a, b, c)); };
    expect_halves(kind, "fma.rn", "a, b, c", fma, kind.values, kind.values, kind.values);
    expect_halves(kind, "fma.rn.relu", "a, b, c", relu, kind.values, kind.values, kind.values);
  }
}

TEST(Halves, TiesThatATinyAddendBreaksAreNotLost) {
  // The product lies halfway between two numbers of the format; the addend decides, however small it is.
  const uint16_t half_way = 0x3C01, smallest = 0x0001, least_negative = 0x8001;
  const Ternary f16 = [](uint16_t a, uint16_t b, uint16_t c) { return half_format.fma(a, b, c); };
  std::vector<uint16_t> factors, addends = {0, 0x8000, smallest, least_negative, 0x0400, 0x1000, 0x9000};
  for (uint16_t k = 0; k < 40; ++k) factors.push_back(static_cast<uint16_t>(half_way + 37 * k));
  expect_halves(kinds[0], "fma.rn", "a, b, c", f16, factors, factors, addends);
  const Ternary bf16 = [](uint16_t a, uint16_t b, uint16_t c) { return bfloat_format.fma(a, b, c); };
  factors.clear();
  for (uint16_t k = 0; k < 40; ++k) factors.push_back(static_cast<uint16_t>(0x3F81 + 11 * k));
  expect_halves(kinds[1], "fma.rn", "a, b, c", bf16, factors, factors, addends);
}

TEST(Halves, FtzAndSatShapeOperandsAndResults) {
  const Kind& kind = kinds[0];
  const SmallFormat& f = half_format;
  const auto ftz = [&](uint16_t x) { return flushed(f, x); };
  const Binary add = [&](uint16_t a, uint16_t b) { return ftz(f.add(ftz(a), ftz(b))); };
  const Binary mul = [&](uint16_t a, uint16_t b) { return saturated(f, f.mul(a, b)); };
  const Ternary fma = [&](uint16_t a, uint16_t b, uint16_t c) {
    return saturated(f, ftz(f.fma(ftz(a), ftz(b), ftz(c))));
  };
  expect_halves(kind, "add.rn.ftz", "a, b", add, kind.values, kind.values);
  expect_halves(kind, "mul.rn.sat", "a, b", mul, kind.values, kind.values);
  expect_halves(kind, "fma.rn.ftz.sat", "a, b, c", fma, kind.values, kind.values, kind.values);
}

TEST(Halves, FtzFlushesTheOperandsOfSignsAndComparisons) {
  const Kind& kind = kinds[0];
  const auto ftz = [](uint16_t x) { return flushed(half_format, x); };
  const Unary abs = [&](uint16_t a) { return static_cast<uint16_t>(ftz(a) & 0x7FFF); };
  const Unary neg = [&](uint16_t a) { return static_cast<uint16_t>(ftz(a) ^ 0x8000); };
  expect_halves(kind, "abs.ftz", "a", abs, kind.values);
  expect_halves(kind, "neg.ftz", "a", neg, kind.values);
  const auto less = [&](uint16_t a, uint16_t b) { return half_format.value(ftz(a)) < half_format.value(ftz(b)); };
  const auto pairs = combinations(kind.values, kind.values);
  expect_instruction<uint16_t, uint16_t, uint16_t>(
      "setp.lt.ftz.f16 q, a, b;\n%Gselp.b16 d, 1, 0, q;", [&](uint16_t a, uint16_t b) { return uint16_t{less(a, b)}; },
      std::equal_to<uint16_t>(), pairs);
  expect_instruction<uint32_t, uint32_t, uint32_t>(
      "set.lt.ftz.f16x2.f16x2 d, a, b;",
      [&](uint32_t a, uint32_t b) {
        const bool low = less(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
        const bool high = less(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
        return (low ? 0x3C00u : 0) | (high ? 0x3C000000u : 0);
      },
      std::equal_to<uint32_t>(), paired(pairs));
}

TEST(Halves, SignsAndExtremesTreatNanAndZeroAsTheIsaSays) {
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    const Unary abs = [](uint16_t a) { return static_cast<uint16_t>(a & 0x7FFF); };
    const Unary neg = [](uint16_t a) { return static_cast<uint16_t>(a ^ 0x8000); };
    expect_halves(kind, "abs", "a", abs, kind.values);
    expect_halves(kind, "neg", "a", neg, kind.values);
    const auto order = [](uint16_t x) { return x >= 0x8000 ? -int{x & 0x7FFF} * 2 - 1 : int{x} * 2; };
    struct Extreme {
      bool maximum = false, nan = false;
    };
    const auto extreme = [&](Extreme is) -> Binary {
      return [&f, order, is](uint16_t a, uint16_t b) {
        if (f.is_nan(a) && f.is_nan(b)) return uint16_t{0x7FFF};
        if (f.is_nan(a)) return is.nan ? uint16_t{0x7FFF} : b;
        if (f.is_nan(b)) return is.nan ? uint16_t{0x7FFF} : a;
        return (order(a) < order(b)) == is.maximum ? b : a;
      };
    };
    expect_halves(kind, "min", "a, b", extreme({}), kind.values, kind.values);
    expect_halves(kind, "max", "a, b", extreme({.maximum = true}), kind.values, kind.values);
    expect_halves(kind, "min.NaN", "a, b", extreme({.nan = true}), kind.values, kind.values);
    expect_halves(kind, "max.NaN", "a, b", extreme({.maximum = true, .nan = true}), kind.values, kind.values);
  }
}

TEST(Halves, ComparisonsKnowTheUnordered) {
  struct Case {
    const char* word;
    bool (*holds)(double, double);
  };
  const Case cases[] = {{"eq", [](double a, double b) { return a == b; }},
                        {"lt", [](double a, double b) { return a < b; }},
                        {"ge", [](double a, double b) { return a >= b; }},
                        {"neu", [](double a, double b) { return !(a == b); }},
                        {"gtu", [](double a, double b) { return !(a <= b); }},
                        {"nan", [](double a, double b) { return std::isnan(a) || std::isnan(b); }}};
  for (const Kind& kind : kinds) {
    for (const Case& c : cases) {
      const auto oracle = [&](uint16_t a, uint16_t b) {
        return uint16_t{c.holds(kind.format->value(a), kind.format->value(b))};
      };
      expect_instruction<uint16_t, uint16_t, uint16_t>(
          "setp." + std::string(c.word) + "." + kind.name + " q, a, b;\n%Gselp.b16 d, 1, 0, q;", oracle,
          std::equal_to<uint16_t>(), combinations(kind.values, kind.values));
    }
  }
}

TEST(Halves, ApproximationsStayWithinTheirBounds) {
  // PTX ISA: ex2.approx.f16 2^-9.9 and .bf16 2^-7 relative; tanh.approx.f16 2^-10.987 and .bf16 2^-8 absolute.
  std::vector<uint16_t> pool;
  for (uint32_t k = 0; k < 0x10000; k += 61) pool.push_back(static_cast<uint16_t>(k));
  const double bounds[2][2] = {{std::exp2(-9.9), std::exp2(-10.987)}, {std::exp2(-7.0), std::exp2(-8.0)}};
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    const double* const bound = bounds[&kind - kinds];
    const auto check = [&](const std::string& word, bool ftz, double relative, double absolute, double (*of)(double)) {
      const auto same = [&](uint16_t x, uint16_t y) {
        if (same_half(f, x, y)) return true;
        const double error = std::abs(f.value(x) - f.value(y));
        return error <= std::max(absolute, relative * std::abs(f.value(y))) ||
               std::abs((x & 0x7FFF) - (y & 0x7FFF)) <= 1;  // one step of the format
      };
      const auto oracle = [&](uint16_t a) {
        const uint16_t result = f.encode(of(f.value(a)));
        return ftz ? flushed(f, result) : result;
      };
      expect_instruction<uint16_t, uint16_t>(word + (ftz ? ".ftz." : ".") + kind.name + " d, a;", oracle, same,
                                             combinations(pool));
    };
    check("ex2.approx", &f == &bfloat_format, bound[0], 0, [](double x) { return std::exp2(x); });
    check("tanh.approx", false, 0, bound[1], [](double x) { return std::tanh(x); });
  }
}

}  // namespace
}  // namespace kiln::emulator::test::core_half_test
