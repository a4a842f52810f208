// Results of instructions in all lanes at once, of operands that each lane has its own of, beside plain C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "machine_code_texts.h"

namespace kiln::timing::interpreter_lanes_test {
namespace {

constexpr uint64_t buffer = 0x7f0000000000;

using Values = std::array<uint32_t, 32>;

// Operands in R4, R5 and R6: small and large numbers, floats of both signs, infinities and NaN, by lanes.
struct Operands {
  Values a, b, c;
};

Operands operands(uint32_t seed) {
  constexpr uint32_t special[] = {0,          1,          0xffffffff, 0x80000000, 0x7fffffff, 31,         32,
                                  33,         0x3f800000, 0xbf800000, 0x40490fdb, 0xc2280000, 0x7f800000, 0xff800000,
                                  0x7fc00000, 0x00000001, 0x4f000000, 0xcf000000, 0x3f000000, 0x4b7fffff};
  Operands made{};
  uint64_t state = seed * 2862933555777941757ULL + 3037000493ULL;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto bits = static_cast<uint32_t>(state >> 32);
    return bits % 3 == 0 ? special[bits / 3 % std::size(special)] : bits % 3 == 1 ? bits >> 20 : bits;
  };
  for (Values* values : {&made.a, &made.b, &made.c}) std::generate(values->begin(), values->end(), next);
  return made;
}

// Values of R3 in all lanes behind the instructions.
Values r3_behind(const std::vector<std::string>& instructions, const Operands& given) {
  Code code;
  code.add("S2R R0, SR_LANEID").add("MOV R8, 0x0").add("MOV R9, 0x7f00").add("IMAD.WIDE.U32 R8, R0, 0x4, R8");
  code.add("LDG.E R4, [R8.64]").add("LDG.E R5, [R8.64+0x80]").add("LDG.E R6, [R8.64+0x100]");
  for (const std::string& instruction : instructions) code.add(instruction);
  code.add("IMAD.WIDE.U32 R20, R3, 0x80, RZ")  // a line for each value, and one of the lanes above it
      .add("SHF.L.U32 R22, R0, 0x8, RZ")
      .add("IADD3 R21, R21, R22, RZ")
      .add("STG.E [R20.64], R4")
      .add("EXIT");
  const Sass sass = code.sass();
  const KernelFacts facts = plain_facts();
  Launch launch;
  launch.block = {32, 1, 1};
  launch.memory = [&](uint64_t address, uint32_t& word) {
    if (address < buffer || address >= buffer + 3 * 128) return false;
    const Values* const of[] = {&given.a, &given.b, &given.c};
    word = (*of[(address - buffer) / 128])[(address - buffer) % 128 / 4];
    return true;
  };
  Interpreter interpreter(sass, facts, launch);
  const BlockPath path = interpreter.run(0);
  EXPECT_EQ(interpreter.report().unknown_addresses, 0U);
  Values values{};
  const WarpPath& warp = path.warps.at(0);
  const Access& stored = warp.accesses.at(warp.executed.at(warp.executed.size() - 2).access);
  EXPECT_EQ(stored.lines, 32U);
  for (uint32_t i = 0; i < stored.lines; ++i) {
    const uint64_t address = warp.lines[stored.first_line + i].address;
    values.at(address >> 40) = static_cast<uint32_t>((address & 0xffffffffff) / 0x80);
  }
  return values;
}

struct Row {
  std::vector<std::string> instructions;
  std::function<uint32_t(uint32_t a, uint32_t b, uint32_t c, uint32_t lane)> expected;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const Operands given = operands(seed);
      const Values found = r3_behind(row.instructions, given);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(found[lane], row.expected(given.a[lane], given.b[lane], given.c[lane], lane))
            << row.instructions.front() << " of " << std::hex << given.a[lane] << " " << given.b[lane] << " "
            << given.c[lane];
      }
    }
  }
}

int32_t as_signed(uint32_t value) {
  return static_cast<int32_t>(value);
}

TEST(InterpreterLanes, AddAndMultiplyIntegers) {
  const auto wide = [](uint32_t a, uint32_t b) { return uint64_t{a} * b; };
  const auto wide_signed = [](uint32_t a, uint32_t b) {
    return static_cast<uint64_t>(int64_t{as_signed(a)} * as_signed(b));
  };
  const auto upper = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
  expect_rows({
      {{"IADD3 R3, R4, R5, R6"}, [](auto a, auto b, auto c, auto) { return a + b + c; }},
      {{"IADD3 R3, -R4, R5, -R6"}, [](auto a, auto b, auto c, auto) { return b - a - c; }},
      {{"IADD3 R9, P1, R4, R5, RZ", "IADD3.X R3, R6, RZ, RZ, P1, !PT"},
       [](auto a, auto b, auto c, auto) { return c + (a + b < a ? 1 : 0); }},
      {{"IADD3 R9, P1, R4, -R5, RZ", "SEL R3, 0x1, 0x2, P1"},
       [](auto a, auto b, auto, auto) { return a >= b ? 1U : 2U; }},
      {{"IMAD R3, R4, R5, R6"}, [](auto a, auto b, auto c, auto) { return a * b + c; }},
      {{"IMAD R3, -R4, R5, R6"}, [](auto a, auto b, auto c, auto) { return c - a * b; }},
      {{"IMAD.HI.U32 R3, R4, R5, RZ"}, [=](auto a, auto b, auto, auto) { return upper(wide(a, b)); }},
      {{"IMAD.HI R3, R4, R5, RZ"}, [=](auto a, auto b, auto, auto) { return upper(wide_signed(a, b)); }},
      {{"MOV R7, RZ", "IMAD.WIDE.U32 R10, R4, R5, R6", "MOV R3, R11"},
       [=](auto a, auto b, auto c, auto) { return upper(wide(a, b) + c); }},
      {{"MOV R7, RZ", "IMAD.WIDE R10, R4, R5, R6", "MOV R3, R11"},
       [=](auto a, auto b, auto c, auto) { return upper(wide_signed(a, b) + c); }},
      {{"LEA R3, R4, R5, 0x4"}, [](auto a, auto b, auto, auto) { return (a << 4) + b; }},
      {{"IMNMX R3, R4, R5, PT"}, [](auto a, auto b, auto, auto) { return as_signed(a) < as_signed(b) ? a : b; }},
      {{"IMNMX.U32 R3, R4, R5, !PT"}, [](auto a, auto b, auto, auto) { return std::max(a, b); }},
      {{"IABS R3, R4"}, [](auto a, auto, auto, auto) { return as_signed(a) < 0 ? 0 - a : a; }},
  });
}

TEST(InterpreterLanes, PickAndShiftBits) {
  expect_rows({
      {{"LOP3.LUT R3, R4, R5, R6, 0xe8, !PT"},
       [](auto a, auto b, auto c, auto) { return (a & b) | (a & c) | (b & c); }},
      {{"LOP3.LUT R3, R4, R5, R6, 0x2a, !PT"}, [](auto a, auto b, auto c, auto) { return c & ~(a & b); }},
      {{"SHF.L.W.U32 R3, R4, R5, RZ"}, [](auto a, auto b, auto, auto) { return a << (b & 31); }},
      {{"SHF.L.U32 R3, R4, R5, RZ"}, [](auto a, auto b, auto, auto) { return b > 31 ? 0 : a << b; }},
      {{"SHF.R.U32.HI R3, RZ, R5, R4"}, [](auto a, auto b, auto, auto) { return b > 31 ? 0 : a >> b; }},
      {{"SHF.R.S32.HI R3, RZ, R5, R4"},
       [](auto a, auto b, auto, auto) { return static_cast<uint32_t>(as_signed(a) >> std::min(b, 31U)); }},
      {{"SHF.R.W.U32 R3, R4, R5, R6"},
       [](auto a, auto b, auto c, auto) { return static_cast<uint32_t>((uint64_t{c} << 32 | a) >> (b & 31)); }},
      {{"PRMT R3, R4, 0x7531, R5"},
       [](auto a, auto b, auto, auto) {
         return (a >> 8 & 0xff) | (a >> 24) << 8 | (b >> 8 & 0xff) << 16 | b >> 24 << 24;
       }},
      {{"POPC R3, R4"}, [](auto a, auto, auto, auto) { return static_cast<uint32_t>(std::popcount(a)); }},
      {{"FLO.U32 R3, R4"},
       [](auto a, auto, auto, auto) { return a == 0 ? ~0U : 31U - static_cast<uint32_t>(std::countl_zero(a)); }},
      {{"SGXT R3, R4, 0x5"}, [](auto a, auto, auto, auto) { return static_cast<uint32_t>(as_signed(a << 27) >> 27); }},
      {{"SEL R3, R4, R5, PT"}, [](auto a, auto, auto, auto) { return a; }},
      {{"BREV R3, R4", "BREV R3, R3"}, [](auto a, auto, auto, auto) { return a; }},
  });
}

TEST(InterpreterLanes, CompareAndSelect) {
  const auto row = [](const std::string& compare, auto holds) {
    return Row{{compare, "SEL R3, 0x1, RZ, P1"},
               [holds](uint32_t a, uint32_t b, uint32_t c, uint32_t lane) -> uint32_t {
                 return holds(a, b, c, lane) ? 1 : 0;
               }};
  };
  const auto number = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  expect_rows({
      row("ISETP.LT.AND P1, PT, R4, R5, PT", [](auto a, auto b, auto, auto) { return as_signed(a) < as_signed(b); }),
      row("ISETP.GE.U32.AND P1, PT, R4, R5, PT", [](auto a, auto b, auto, auto) { return a >= b; }),
      row("ISETP.NE.AND P1, PT, R4, R5, PT", [](auto a, auto b, auto, auto) { return a != b; }),
      row("FSETP.LT.AND P1, PT, R4, R5, PT", [=](auto a, auto b, auto, auto) { return number(a) < number(b); }),
      row("FSETP.GEU.AND P1, PT, R4, R5, PT", [=](auto a, auto b, auto, auto) { return !(number(a) < number(b)); }),
      row("FSETP.NEU.AND P1, PT, R4, R4, PT", [=](auto a, auto, auto, auto) { return std::isnan(number(a)); }),
      row("FSETP.GT.AND P1, PT, |R4|, -R5, PT",
          [=](auto a, auto b, auto, auto) { return std::fabs(number(a)) > -number(b); }),
  });
}

// NaN that a lane finds is NaN behind the instruction, whatever its bits.
bool same(uint32_t found, float expected) {
  const float value = std::bit_cast<float>(found);
  return std::isnan(expected) ? std::isnan(value) : found == std::bit_cast<uint32_t>(expected);
}

TEST(InterpreterLanes, ComputeInSinglePrecision) {
  const std::pair<const char*, std::function<float(float, float, float)>> rows[] = {
      {"FADD R3, R4, R5", [](float a, float b, float) { return a + b; }},
      {"FADD R3, -R4, |R5|", [](float a, float b, float) { return -a + std::fabs(b); }},
      {"FMUL R3, R4, R5", [](float a, float b, float) { return a * b; }},
      {"FFMA R3, R4, R5, R6", [](float a, float b, float c) { return std::fma(a, b, c); }},
      {"MUFU.RCP R3, R4", [](float a, float, float) { return 1 / a; }},
      {"MUFU.SQRT R3, R4", [](float a, float, float) { return std::sqrt(a); }},
      {"MUFU.RSQ R3, R4", [](float a, float, float) { return 1 / std::sqrt(a); }},
      {"MUFU.EX2 R3, R4", [](float a, float, float) { return std::exp2(a); }},
      {"MUFU.LG2 R3, R4", [](float a, float, float) { return std::log2(a); }},
      {"MUFU.SIN R3, R4", [](float a, float, float) { return std::sin(a); }},
      {"MUFU.COS R3, R4", [](float a, float, float) { return std::cos(a); }}};
  for (const auto& [instruction, expected] : rows) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const Operands given = operands(seed);
      const Values found = r3_behind({instruction}, given);
      for (size_t lane = 0; lane < 32; ++lane) {
        const float a = std::bit_cast<float>(given.a[lane]), b = std::bit_cast<float>(given.b[lane]),
                    c = std::bit_cast<float>(given.c[lane]);
        EXPECT_TRUE(same(found[lane], expected(a, b, c))) << instruction << " of " << a << " " << b << " " << c;
      }
    }
  }
}

TEST(InterpreterLanes, ConvertIntegersAndFloats) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  const auto to_integer = [](uint32_t a, double (*whole)(double), double least, double most) {
    const double value = std::bit_cast<float>(a);
    return std::isnan(value) ? 0.0 : std::clamp(whole(value), least, most);
  };
  const auto signed_of = [=](double (*whole)(double)) {
    return [=](uint32_t a, uint32_t, uint32_t, uint32_t) {
      return static_cast<uint32_t>(static_cast<int32_t>(to_integer(a, whole, -2147483648.0, 2147483647.0)));
    };
  };
  expect_rows({
      {{"I2F R3, R4"}, [=](auto a, auto, auto, auto) { return bits(static_cast<float>(as_signed(a))); }},
      {{"I2F.U32 R3, R4"}, [=](auto a, auto, auto, auto) { return bits(static_cast<float>(a)); }},
      {{"F2I.TRUNC.NTZ R3, R4"}, signed_of(std::trunc)},
      {{"F2I.FLOOR.NTZ R3, R4"}, signed_of(std::floor)},
      {{"F2I.CEIL.NTZ R3, R4"}, signed_of(std::ceil)},
      {{"F2I.NTZ R3, R4"}, signed_of(std::nearbyint)},
      {{"F2I.U32.TRUNC.NTZ R3, R4"},
       [=](auto a, auto, auto, auto) { return static_cast<uint32_t>(to_integer(a, std::trunc, 0, 4294967295.0)); }},
  });
}

TEST(InterpreterLanes, ExchangeValuesBetweenLanes) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Operands given = operands(seed);
    for (const uint32_t width : {32U, 16U, 8U, 4U}) {
      const uint32_t bounds = (32 - width) << 8 | 31, bounds_up = (32 - width) << 8;
      for (const uint32_t by : {0U, 1U, 3U, 7U, 13U}) {
        const auto found = [&](const std::string& kind, uint32_t c) {
          return r3_behind({fmt::format("SHFL.{} PT, R3, R4, {:#x}, {:#x}", kind, by, c)}, given);
        };
        const Values up = found("UP", bounds_up), down = found("DOWN", bounds), other = found("BFLY", bounds),
                     one = found("IDX", bounds);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t first = lane / width * width, last = first + width - 1;
          EXPECT_EQ(up[lane], given.a[lane >= first + by ? lane - by : lane]) << width << " " << by;
          EXPECT_EQ(down[lane], given.a[lane + by <= last ? lane + by : lane]) << width << " " << by;
          EXPECT_EQ(other[lane], given.a[(lane ^ by) <= last ? lane ^ by : lane]) << width << " " << by;
          EXPECT_EQ(one[lane], given.a[first + by % width]) << width << " " << by;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::timing::interpreter_lanes_test
