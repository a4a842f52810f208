#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "kiln/base/error.h"
#include "machine_code_texts.h"

namespace kiln::timing::interpreter_test {
namespace {

constexpr uint64_t buffer = 0x7f0000000000;

std::string parameters(std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

// The sectors of these words.
std::vector<uint64_t> sectors(std::vector<uint64_t> words) {
  for (uint64_t& word : words) word = (buffer + word * 4) / 32 * 32;
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// Kernels of data/kernels.cu, for each architecture.
class Kernels : public testing::TestWithParam<int> {
 protected:
  BlockPath run(const std::string& kernel, uint32_t threads, const std::string& arguments, uint64_t block = 0) {
    sass_ = parse_sass(read_data("kernels_sm_" + std::to_string(GetParam()) + ".sass"), kernel);
    KernelFacts facts = find_kernel(read_cubin(read_data("kernels_sm_80.cubin")), kernel);
    facts.parameter_base = plain_facts(GetParam()).parameter_base;
    if (kernel == "indexed") facts.local_bytes = 128;  // what none of the architectures exceeds
    Launch launch;
    launch.grid = {4, 1, 1};
    launch.block = {threads, 1, 1};
    launch.parameters = arguments;
    launch.memory = memory_;
    Interpreter interpreter(sass_, facts, launch);
    BlockPath path = interpreter.run(block);
    EXPECT_THAT(interpreter.report().unknown_opcodes, testing::IsEmpty());
    return path;
  }

  size_t executed(const BlockPath& block, const std::string& opcode) const {
    size_t count = 0;
    for (const WarpPath& warp : block.warps) {
      for (const Executed& executed : warp.executed) {
        if (sass_.instructions[executed.instruction].opcode == opcode)
          count += static_cast<size_t>(std::popcount(executed.active));
      }
    }
    return count;
  }

  Sass sass_;
  std::function<bool(uint64_t, uint32_t&)> memory_;
};

TEST_P(Kernels, DivergentLoopsAddressWhatTheyCompute) {
  for (const uint64_t block : {0, 1}) {
    std::vector<uint64_t> words;
    for (uint32_t i = 0; i < 96; ++i) {
      const auto t = static_cast<uint32_t>(block * 96 + i);
      uint32_t sum = 0;
      for (uint32_t k = 0; k < t % 7; ++k) {
        if (((t + k) & 1) != 0) {
          sum += k * 3;
        } else {
          sum ^= t << (k & 3);
        }
      }
      if (t < 150) words.push_back(sum);
    }
    const BlockPath path = run("diverge", 96, parameters({buffer, 150}), block);
    EXPECT_EQ(sectors_of(path), sectors(words));
    EXPECT_EQ(executed(path, "STG"), block == 0 ? 96U : 54U);
    EXPECT_EQ(executed(path, "EXIT"), 96U);
  }
}

TEST_P(Kernels, DividesByWhatTheCompilerDoesNotKnow) {
  std::vector<uint64_t> words;
  for (uint32_t t = 0; t < 128; ++t) {
    words.push_back(t / 7 + 100 * (t % 7));
    words.push_back(1000 + static_cast<uint32_t>((static_cast<int>(t) - 40) / 7 + 50));
    words.push_back((t * 0x100000001ULL + 5) / 123457 % 1000);
  }
  EXPECT_EQ(sectors_of(run("divide", 128, parameters({buffer, 7, 123457}))), sectors(words));
}

TEST_P(Kernels, IntegersGoThroughSharedMemory) {
  for (const uint32_t stride : {1, 2, 8}) {
    std::vector<uint32_t> other(64), tile(2048, 0);
    for (uint32_t t = 0; t < 64; ++t) tile[t * stride] = t * t;
    for (uint32_t t = 0; t < 64; ++t) other[t] = tile[(63 - t) * stride];
    for (uint32_t step = 1; step < 4; ++step) {
      for (uint32_t t = 0; t < 64; ++t) tile[t] = other[t] + step;
      for (uint32_t t = 0; t < 64; ++t) other[t] += tile[t ^ step];
    }
    const BlockPath path = run("exchange", 64, parameters({buffer, stride}));
    EXPECT_EQ(sectors_of(path), sectors({other.begin(), other.end()}));
    EXPECT_EQ(path.warps[0].barriers.size(), 7U);
    // The first store is that of the stride: as many passes as threads meet in a bank.
    EXPECT_EQ(path.warps[1].accesses[0].wavefronts, stride);
  }
}

TEST_P(Kernels, LanesExchangeIntegers) {
  std::vector<uint64_t> words;
  for (uint32_t t = 0; t < 32; ++t) {
    const uint32_t a = t ^ 5, b = t < 3 ? 2 * t : 2 * (t - 3), c = t % 8 < 4 ? 3 * (t + 4) : 3 * t, d = t / 2 + 7;
    const uint32_t e = 0x22222222;
    words.push_back(a + 64 * (b & 31));
    words.push_back(c + d);
    words.push_back(static_cast<uint32_t>(std::popcount(e >> t)) + 2 + static_cast<uint32_t>(std::countl_zero(t + 1)) +
                    1000);
  }
  EXPECT_EQ(sectors_of(run("lanes", 32, parameters({buffer}))), sectors(words));
}

TEST_P(Kernels, IndexedArraysAreInLocalMemory) {
  std::vector<uint64_t> words;
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t values[24];
    for (uint32_t i = 0; i < 24; ++i) values[i] = i * i + t;
    uint32_t at = t % 24;
    for (uint32_t i = 0; i < 5; ++i) {
      values[at] += i;
      at = values[at] % 24;
    }
    words.push_back(values[at]);
  }
  const BlockPath path = run("indexed", 32, parameters({buffer, 5}));
  EXPECT_EQ(sectors_of(path), sectors(words));
  // Equal offsets of all lanes are one line of four sectors.
  const auto first = std::find_if(path.warps[0].accesses.begin(), path.warps[0].accesses.end(),
                                  [](const Access& access) { return access.space == Access::Space::local; });
  ASSERT_NE(first, path.warps[0].accesses.end());
  EXPECT_EQ(path.warps[0].lines[first->first_line].sectors, 15U);
}

TEST_P(Kernels, AccessesHaveTheirWidths) {
  const BlockPath path = run("widths", 32, parameters({buffer, buffer + 65536, buffer + 131072}));
  std::vector<uint64_t> expected;
  for (uint64_t t = 0; t < 32; ++t) {
    for (const uint64_t at : {t * 3, 65536 + t * 16, 131072 + (t ^ 1) * 2, 65536 + 4096 - t * 24}) {
      expected.push_back((buffer + at) / 32 * 32);
    }
  }
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(sectors_of(path), expected);
  EXPECT_EQ(executed(path, "STG"), 128U);
  // Bytes at a distance of 3 fill no sector; 16 bytes of each lane, and 2 bytes of neighbours, fill all of theirs.
  for (const Access& access : path.warps[0].accesses) {
    for (uint32_t i = 0; i < access.lines; ++i) {
      const Line& line = path.warps[0].lines[access.first_line + i];
      const uint64_t at = line.address - buffer;
      const bool is_full = (at >= 65536 && at < 65536 + 512) || at >= 131072;
      if (is_full || at < 4096) {
        EXPECT_EQ(line.partial, is_full ? 0 : line.sectors) << at;
      }
    }
  }
  const bool has_wide = std::any_of(path.warps[0].accesses.begin(), path.warps[0].accesses.end(),
                                    [](const Access& access) { return access.lines == 4 && access.wavefronts == 4; });
  EXPECT_TRUE(has_wide) << "32 lanes of 16 bytes are four lines";
}

TEST_P(Kernels, FunctionsAreCalledAndReturn) {
  std::vector<uint64_t> words;
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t power = 1;
    for (uint32_t i = 0; i < (t & 7); ++i) power *= 3;
    words.push_back(power % 4099 + t * t);
  }
  EXPECT_EQ(sectors_of(run("calls", 32, parameters({buffer}))), sectors(words));
}

TEST_P(Kernels, BranchesByDataNeedTheData) {
  try {
    run("by_data", 32, parameters({buffer, buffer + 4096}));
    FAIL() << "the loop's end is not known";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("give Launch::memory what the kernel reads there"));
  }
  memory_ = [](uint64_t address, uint32_t& word) {
    word = static_cast<uint32_t>((address - buffer) / 4 % 3);
    return address < buffer + 4096;
  };
  const BlockPath path = run("by_data", 32, parameters({buffer, buffer + 4096}));
  // Lanes go round 0, 1 or 2 times: eleven of the lanes with remainder 0 and 1, ten with 2.
  EXPECT_EQ(executed(path, "MEMBAR"), 11U + 2 * 10U);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Kernels, testing::Values(75, 80, 90, 120));

BlockPath run_code(const Sass& sass, Launch launch = {}) {
  launch.block = {32, 1, 1};
  const KernelFacts facts = plain_facts(sass.arch);
  return Interpreter(sass, facts, launch).run(0);
}

TEST(Interpreter, GuardsThatAreFalseTakeAStepButNoAccess) {
  const Sass sass = Code().add("ISETP.NE.AND P0, PT, RZ, RZ, PT").add("@P0 LDG.E R2, [R4.64]").add("@!P0 EXIT").sass();
  const BlockPath path = run_code(sass);
  ASSERT_EQ(path.warps[0].executed.size(), 3U);
  EXPECT_EQ(path.warps[0].executed[1].active, 0U);
  EXPECT_EQ(path.warps[0].executed[1].access, no_access);
}

// Code with data in P0.
Code with_data() {
  return Code().add("LDG.E R2, [RZ]").add("ISETP.LT.AND P0, PT, R2, RZ, PT");
}

TEST(Interpreter, BranchesByDataLeadPastCalls) {
  const Sass over =
      with_data().add("@P0 BRA `(on)").add("NOP").add("CALL.REL.NOINC `(on)").label("on").add("EXIT").sass();
  const Sass towards =
      with_data().add("@P0 BRA `(rare)").add("EXIT").label("rare").add("CALL.REL.NOINC `(rare)").sass();
  for (const Sass* sass : {&over, &towards}) {
    const KernelFacts facts = plain_facts(sass->arch);
    Launch launch;
    launch.block = {32, 1, 1};
    Interpreter interpreter(*sass, facts, launch);
    const BlockPath path = interpreter.run(0);
    EXPECT_EQ(sass->instructions[path.warps[0].executed.back().instruction].opcode, "EXIT");
    EXPECT_EQ(path.warps[0].executed.size(), 4U) << "past the call";
    EXPECT_EQ(interpreter.report().guessed_branches, 1U);
  }
}

TEST(Interpreter, CallsBehindAnotherJumpDoNotDecide) {
  for (const char* jump : {"BRA `(on)", "BRX R4 -0x40", "EXIT", "RET.REL.NODEC R4 `(on)", "BSYNC B0"}) {
    const Sass sass =
        with_data().add("@P0 BRA `(on)").add(jump).add("CALL.REL.NOINC `(on)").label("on").add("EXIT").sass();
    try {
      run_code(sass);
      FAIL() << jump;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("depends on data")) << jump;
    }
  }
}

// Even lanes to the EXIT that follows at 0x50, odd ones to the NOP behind it.
TEST(Interpreter, BranchesByATableLeadEachLaneToItsPlace) {
  const Sass sass = Code()
                        .add("S2R R0, SR_TID.X")
                        .add("LOP3.LUT R2, R0, 0x1, RZ, 0xc0, !PT")
                        .add("SHF.L.U32 R2, R2, 0x4, RZ")
                        .add("@!PT BRX R2 -0x10")
                        .add("BRX R2 -0x0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*)")
                        .add("EXIT")
                        .add("NOP")
                        .add("FADD R3, RZ, RZ")
                        .add("EXIT")
                        .sass();
  const BlockPath path = run_code(sass);
  std::vector<std::pair<uint32_t, uint32_t>> executed;
  for (const Executed& one : path.warps[0].executed) executed.emplace_back(one.instruction, one.active);
  constexpr uint32_t even = 0x55555555, odd = 0xaaaaaaaa;
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0, ~0U},  {1, ~0U}, {2, ~0U}, {3, 0},  {4, ~0U},
                                                               {5, even}, {6, odd}, {7, odd}, {8, odd}};
  EXPECT_EQ(executed, expected);
}

TEST(Interpreter, BranchesByATableHaveConditions) {
  for (const char* branch : {"BRX PT, R4 0x10", "BRXU PT, UR4 0x10", "BRX !PT, R4 0x10", "@!PT BRX R4 0x10"}) {
    const BlockPath path = run_code(Code().add(branch).add("NOP").add("EXIT").sass());
    EXPECT_EQ(path.warps[0].executed.size(), std::string(branch).find('!') == std::string::npos ? 2U : 3U) << branch;
  }
}

TEST(Interpreter, BranchesByATableToNowhereAreErrors) {
  const auto fails_with = [](Code code, const std::string& text) {
    try {
      run_code(code.sass());
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  fails_with(Code().add("MOV R2, 0x8").add("BRX R2 -0x10").add("EXIT"), "no instruction at 0x18");
  fails_with(Code().add("MOV R2, 0x7fffffff").add("BRX R2 -0x7fffffffffffffff").add("EXIT"), "no instruction at");
  fails_with(Code().add("LDG.E R2, [RZ]").add("BRX R2 -0x10").add("EXIT"), "depends on data");
  fails_with(with_data().add("@P0 BRX R4 -0x30").add("EXIT"), "depends on data");
  fails_with(with_data().add("BRX P0, R4 -0x30").add("EXIT"), "depends on data");
  fails_with(Code().add("BRX").add("EXIT"), "BRX");
}

TEST(Interpreter, WaitsAreOverOnceMemoryIsKnown) {
  const Sass sass = Code()
                        .label("again")
                        .add("LDG.E.STRONG.GPU R2, [RZ]")
                        .add("ISETP.EQ.AND P0, PT, R2, RZ, PT")
                        .add("@P0 BRA `(again)")
                        .add("EXIT")
                        .sass();
  Launch launch;
  EXPECT_THROW(run_code(sass, launch), Error);
  launch.memory = [](uint64_t, uint32_t& word) {
    word = 0;  // as it stays if nobody writes
    return true;
  };
  EXPECT_EQ(run_code(sass, launch).warps[0].executed.size(), 4U);
}

TEST(Interpreter, WhatIsNotKnownDoesNotMatterWhereTheRestDecides) {
  // P1 = data < 0 && false; SEL takes the known one.
  const Sass sass = Code()
                        .add("ISETP.NE.AND P0, PT, RZ, RZ, PT")
                        .add("LDG.E R2, [RZ]")
                        .add("ISETP.LT.AND P1, PT, R2, RZ, P0")
                        .add("@P1 EXIT")
                        .add("SEL R3, R2, 0x40, P1")
                        .add("ISETP.EQ.AND P2, PT, R3, 0x40, PT")
                        .add("@P2 EXIT")
                        .add("NOP")
                        .sass();
  EXPECT_EQ(run_code(sass).warps[0].executed.size(), 7U);
}

// As compilers for sm_90 bound the loop of a block that has a part of the work: min(first + part, whole).
TEST(Interpreter, TheSmallerAndTheLargerAreOfASumWhereOneIsAdded) {
  const std::pair<const char*, const char*> cases[] = {
      {"VIADDMNMX R3, R2, 0x3, 0x6, PT", "0x6"},  // 5 + 3
      {"VIADDMNMX R3, R2, 0x3, 0x9, PT", "0x8"},
      {"VIADDMNMX R3, R2, 0x3, 0x6, !PT", "0x8"},
      {"VIADDMNMX R3, R4, -R2, 0x6, PT", "0x2"},  // 7 - 5
      {"VIADDMNMX R3, R2, 0xfffffffa, 0x6, PT", "0xffffffff"},
      {"VIADDMNMX.U32 R3, R2, 0xfffffffa, 0x6, PT", "0x6"},
      {"VIMNMX R3, R2, 0x3, PT", "0x3"},
      {"VIMNMX R3, R2, 0x3, !PT", "0x5"},
  };
  for (const auto& [instruction, result] : cases) {
    const Sass sass = Code()
                          .add("MOV R2, 0x5")
                          .add("MOV R4, 0x7")
                          .add(instruction)
                          .add(fmt::format("ISETP.EQ.AND P0, PT, R3, {}, PT", result))
                          .add("@P0 EXIT")
                          .add("NOP")
                          .add("EXIT")
                          .sass();
    EXPECT_EQ(run_code(sass).warps[0].executed.size(), 5U) << instruction << " is not " << result;
  }
}

// The registers and predicates that the instructions of these tables find.
Code with_values() {
  Code code;
  const std::pair<int, const char*> registers[] = {{2, "0x5"},         {4, "0xfffffff9"},  {5, "0x12345678"},
                                                   {6, "0xdeadbeef"},  {7, "0x1"},         {10, "0x3fc00000"},
                                                   {11, "0xc0200000"}, {12, "0x40800000"}, {13, "0x40400000"},
                                                   {14, "0x50400000"}, {15, "0x7fc00000"}};
  for (const auto& [index, value] : registers) code.add(fmt::format("MOV R{}, {}", index, value));
  return code.add("ISETP.EQ.AND P1, P2, RZ, RZ, PT");  // P1 holds, P2 does not
}

// The instructions, and whether R3 is `expected` behind them.
bool gives(const std::string& instructions, uint32_t expected) {
  Code code = with_values();
  for (size_t begin = 0; begin < instructions.size();) {
    const size_t end = std::min(instructions.find("; ", begin), instructions.size());
    code.add(instructions.substr(begin, end - begin));
    begin = end + 2;
  }
  code.add(fmt::format("ISETP.EQ.AND P0, PT, R3, {:#x}, PT", expected)).add("@!P0 EXIT").add("NOP").add("EXIT");
  const Sass sass = code.sass();
  const BlockPath path = run_code(sass);
  const WarpPath& warp = path.warps[0];
  return sass.instructions[warp.executed.at(warp.executed.size() - 2).instruction].opcode == "NOP";
}

struct Result {
  const char* instructions;
  uint32_t r3;
};

// R2 is 5, R4 is -7.
TEST(Interpreter, AddsMultipliesAndComparesIntegersAsTheMachine) {
  const Result results[] = {
      {"IADD3 R3, R2, R4, R5", 0x12345676},
      {"IADD3 R3, -R2, R4, RZ", 0xfffffff4},
      {"IADD3.X R3, R2, R2, RZ, P1, !PT", 11},
      {"IADD3.X R3, R2, R2, RZ, !PT, P1", 11},
      {"IADD3.X R3, R2, ~R2, RZ, P1, !PT", 0},
      {"IADD3 R9, P3, R4, R4, RZ; SEL R3, 0x1, RZ, P3", 1},
      {"IADD3 R9, P3, R2, R5, RZ; SEL R3, 0x1, RZ, P3", 0},
      {"IADD3 R9, P3, P4, R4, R4, R4; SEL R3, 0x1, RZ, P4", 1},
      {"IADD3 R9, P3, P4, R4, R4, RZ; SEL R3, 0x1, RZ, P4", 0},
      {"IMAD R3, R2, R4, R2", 0xffffffe2},
      {"IMAD R3, R2, R4, -R2", 0xffffffd8},
      {"IMAD.HI R3, R2, R4, RZ", 0xffffffff},
      {"IMAD.HI.U32 R3, R2, R4, RZ", 4},
      {"IMAD.WIDE R8, R2, R4, R6; MOV R3, R9", 1},
      {"IMAD.WIDE R8, R2, R4, R6; MOV R3, R8", 0xdeadbecc},
      {"IMAD.WIDE.U32 R8, R2, R4, R6; MOV R3, R9", 6},
      {"IMAD.X R3, R2, R2, RZ, P1", 26},
      {"IMAD.X R3, R2, R2, RZ, P2", 25},
      {"LEA R3, R2, R4, 0x3", 33},
      {"LEA.HI R3, R5, R2, RZ, 0x8", 0x17},
      {"LEA.HI R3, R5, R2, R6, 0x4", 0xeadbeef6},
      {"LEA.HI.X R3, R5, R2, RZ, 0x8, P1", 0x18},
      {"LEA.HI.SX32 R3, R4, R2, 0x1b", 4},
      {"LEA.HI.SX32 R3, R5, R2, 0x8", 0x17},
      {"LEA R9, P3, R6, R6, 0x0; SEL R3, 0x1, RZ, P3", 1},
      {"LEA R9, P3, R2, R2, 0x0; SEL R3, 0x1, RZ, P3", 0},
      {"IMNMX R3, R2, R4, PT", 0xfffffff9},
      {"IMNMX R3, R2, R4, !PT", 5},
      {"IMNMX.U32 R3, R2, R4, PT", 5},
      {"SEL R3, R2, R4, P1", 5},
      {"SEL R3, R2, R4, P2", 0xfffffff9},
      {"IABS R3, R4", 7},
      {"IABS R3, R2", 5},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

TEST(Interpreter, ShiftsAndPicksBitsAsTheMachine) {
  const Result results[] = {
      {"LOP3.LUT R3, R5, R6, R2, 0xc0, !PT", 0x12241668},
      {"LOP3.LUT R3, R5, R6, R2, 0x96, !PT", 0xcc99e892},
      {"LOP3.LUT P3, RZ, R5, R6, RZ, 0xc0, !PT; SEL R3, 0x1, RZ, P3", 1},
      {"LOP3.LUT P3, RZ, R2, 0x2, RZ, 0xc0, !PT; SEL R3, 0x1, RZ, P3", 0},
      {"LOP3.LUT P3, RZ, R2, 0x2, RZ, 0xc0, P1; SEL R3, 0x1, RZ, P3", 1},
      {"SHF.L.U32 R3, R2, 0x4, RZ", 0x50},
      {"SHF.L.U32 R3, R2, 0x20, RZ", 0},
      {"SHF.L.W.U32 R3, R2, 0x24, RZ", 0x50},
      {"SHF.L.W.U32.HI R3, R5, 0x8, R5", 0x34567812},
      {"SHF.L.U64.HI R3, R5, 0x8, R6", 0xadbeef12},
      {"SHF.L.U64.HI R3, R5, 0x40, R6", 0},
      {"SHF.R.U32.HI R3, RZ, 0x4, R6", 0x0deadbee},
      {"SHF.R.U32.HI R3, RZ, 0x20, R6", 0},
      {"SHF.R.S32.HI R3, RZ, 0x4, R6", 0xfdeadbee},
      {"SHF.R.S32.HI R3, RZ, 0x28, R6", 0xffffffff},
      {"SHF.R.S32.HI R3, RZ, 0x28, R5", 0},
      {"SHF.R.U64 R3, R5, 0x8, R6", 0xef123456},
      {"SHF.R.U64 R3, R5, 0x40, R6", 0},
      {"SHF.R.S64 R3, R5, 0x28, R6", 0xffdeadbe},
      {"SHF.R.S64 R3, R5, 0x40, R6", 0xffffffff},
      {"PRMT R3, R5, 0x123, R6", 0x78563412},
      {"PRMT R3, R5, 0x5410, R6", 0xbeef5678},
      {"PRMT R3, R5, 0xc8bf, R6", 0xff0000ff},
      {"BMSK R3, 0x4, 0x8", 0xff0},
      {"BMSK R3, 0x20, 0x1", 0},
      {"BMSK R3, 0x1f, RZ", 0},
      {"BMSK R3, 0x1f, 0x1", 0x80000000},
      {"BMSK R3, RZ, 0x20", 0xffffffff},
      {"BMSK R3, RZ, 0x1f", 0x7fffffff},
      {"SGXT R3, R6, 0x10", 0xffffbeef},
      {"SGXT R3, R5, 0x10", 0x5678},
      {"SGXT R3, R2, 0x1", 0xffffffff},
      {"SGXT R3, R6, 0x20", 0xdeadbeef},
      {"SGXT R3, R6, RZ", 0},
      {"SGXT.U32 R3, R6, 0x10", 0xbeef},
      {"POPC R3, R6", 24},
      {"FLO.U32 R3, R2", 2},
      {"FLO.U32.SH R3, R2", 29},
      {"FLO.U32 R3, R4", 31},
      {"FLO R3, R4", 2},
      {"FLO.U32 R3, RZ", 0xffffffff},
      {"BREV R3, R5", 0x1e6a2c48},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// R10 is 1.5, R11 -2.5, R12 4, R13 3, R14 3 * 2^32, R15 no number; R6 and R7 are a pair.
TEST(Interpreter, ComputesInSinglePrecisionAsTheMachine) {
  const Result results[] = {
      {"FADD R3, R10, R11", 0xbf800000},
      {"FADD R3, R10, -R11", 0x40800000},
      {"FADD R3, |R11|, R10", 0x40800000},
      {"FADD R3, -|R11|, R10", 0xbf800000},
      {"FMUL R3, R10, R11", 0xc0700000},
      {"FFMA R3, R10, R11, R10", 0xc0100000},
      {"FMNMX R3, R10, R11, PT", 0xc0200000},
      {"FMNMX R3, R10, R11, !PT", 0x3fc00000},
      {"FSEL R3, R10, -R11, !PT", 0x40200000},
      {"MUFU.RCP R3, R12", 0x3e800000},
      {"MUFU.RSQ R3, R12", 0x3f000000},
      {"MUFU.SQRT R3, R12", 0x40000000},
      {"MUFU.EX2 R3, R13", 0x41000000},
      {"MUFU.LG2 R3, R12", 0x40000000},
      {"MUFU.SIN R3, RZ", 0},
      {"MUFU.COS R3, RZ", 0x3f800000},
      {"I2F R3, R4", 0xc0e00000},
      {"I2F.U32 R3, R4", 0x4f800000},
      {"MOV R9, 0x1000001; I2F.U32 R3, R9", 0x4b800000},
      {"MOV R9, 0x1000001; I2F.U32.RP R3, R9", 0x4b800001},
      {"I2F.RP R3, R2", 0x40a00000},
      {"I2F.U64 R3, R6", 0x4fef56df},
      {"MOV R8, R4; MOV R9, 0xffffffff; I2F.S64 R3, R8", 0xc0e00000},
      {"MOV R8, 0x1; MOV R9, 0x1; I2F.U64.RP R3, R8", 0x4f800001},
      {"MOV R8, 0x1; MOV R9, 0x1; I2F.U64 R3, R8", 0x4f800000},
      {"F2I.NTZ R3, R10", 2},
      {"F2I.TRUNC.NTZ R3, R10", 1},
      {"F2I.FLOOR.NTZ R3, R11", 0xfffffffd},
      {"F2I.TRUNC.NTZ R3, R11", 0xfffffffe},
      {"F2I.CEIL.NTZ R3, R10", 2},
      {"F2I.U32.TRUNC.NTZ R3, R11", 0},
      {"F2I.U32.TRUNC.NTZ R3, R14", 0xffffffff},
      {"F2I.TRUNC.NTZ R3, R14", 0x7fffffff},
      {"F2I.TRUNC.NTZ R3, -R14", 0x80000000},
      {"F2I.TRUNC.NTZ R3, R15", 0},
      {"F2I.U64.TRUNC R8, R14; MOV R3, R9", 3},
      {"F2I.U64.TRUNC R8, R14; MOV R3, R8", 0},
      {"F2I.U64.TRUNC R8, R11; MOV R3, R9", 0},
      {"F2I.S64.TRUNC R8, R11; MOV R3, R8", 0xfffffffe},
      {"F2I.S64.TRUNC R8, R11; MOV R3, R9", 0xffffffff},
      {"F2I.S64.TRUNC R8, R15; MOV R3, R9", 0},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// R8 and R9 are a pair, R6 and R7 another.
TEST(Interpreter, ComparesAsTheMachine) {
  const std::pair<const char*, bool> comparisons[] = {
      {"ISETP.LT.AND P3, PT, R4, R2, PT", true},
      {"ISETP.LT.AND P3, PT, R2, R2, PT", false},
      {"ISETP.LT.U32.AND P3, PT, R4, R2, PT", false},
      {"ISETP.LE.AND P3, PT, R2, R2, PT", true},
      {"ISETP.LE.AND P3, PT, R2, R4, PT", false},
      {"ISETP.EQ.AND P3, PT, R2, R2, PT", true},
      {"ISETP.EQ.AND P3, PT, R4, R2, PT", false},
      {"ISETP.NE.AND P3, PT, R4, R2, PT", true},
      {"ISETP.NE.AND P3, PT, R2, R2, PT", false},
      {"ISETP.GE.AND P3, PT, R2, R2, PT", true},
      {"ISETP.GE.AND P3, PT, R4, R2, PT", false},
      {"ISETP.GT.AND P3, PT, R2, R4, PT", true},
      {"ISETP.GT.AND P3, PT, R2, R2, PT", false},
      {"ISETP.F.AND P3, PT, R2, R2, PT", false},
      {"ISETP.T.AND P3, PT, R2, R4, PT", true},
      {"ISETP.LT.AND P3, PT, R4, R2, P2", false},
      {"ISETP.GT.OR P3, PT, R4, R2, P1", true},
      {"ISETP.GT.OR P3, PT, R4, R2, P2", false},
      {"ISETP.LT.OR P3, PT, R4, R2, P2", true},
      {"ISETP.LT.XOR P3, PT, R4, R2, P1", false},
      {"ISETP.LT.XOR P3, PT, R4, R2, P2", true},
      {"ISETP.LT.AND P4, P3, R4, R2, PT", false},
      {"ISETP.GT.AND P4, P3, R4, R2, PT", true},
      {"ISETP.GT.AND P4, P3, R4, R2, P2", false},
      {"ISETP.LT.AND.EX P3, PT, R2, R2, PT, P1", true},
      {"ISETP.LT.AND.EX P3, PT, R2, R2, PT, P2", false},
      {"ISETP.LT.AND.EX P3, PT, R4, R2, PT, P2", true},
      {"MOV R8, 0x2; MOV R9, 0x1; ISETP.LT.U64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, 0x2; MOV R9, 0xffffffff; ISETP.LT.U64.AND P3, PT, R8, R6, PT", false},
      {"MOV R8, 0x2; MOV R9, 0xffffffff; ISETP.LT.S64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, R6; MOV R9, 0x1; ISETP.EQ.U64.AND P3, PT, R8, R6, PT", true},
      {"MOV R8, R6; MOV R9, 0x2; ISETP.EQ.U64.AND P3, PT, R8, R6, PT", false},
      {"FSETP.LT.AND P3, PT, R11, R10, PT", true},
      {"FSETP.GT.AND P3, PT, R11, R10, PT", false},
      {"FSETP.GT.AND P3, PT, |R11|, R10, PT", true},
      {"FSETP.EQ.AND P3, PT, R10, R10, PT", true},
      {"FSETP.EQ.AND P3, PT, R15, R15, PT", false},
      {"PLOP3.LUT P3, PT, P1, P2, PT, 0x80, 0x0", false},
      {"PLOP3.LUT P3, PT, P1, !P2, PT, 0x80, 0x0", true},
      {"PLOP3.LUT P4, P3, P1, P2, PT, 0x80, 0xa8", true},
  };
  for (const auto& [instructions, holds] : comparisons) {
    EXPECT_TRUE(gives(std::string(instructions) + "; SEL R3, 0x1, RZ, P3", holds ? 1 : 0)) << instructions;
  }
}

// R0 is the lane.
TEST(Interpreter, LanesVoteExchangeAndPackAsTheMachine) {
  const Result results[] = {
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ANY R3, PT, P3", 15},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ANY P4, P3; SEL R3, 0x1, RZ, P4", 1},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.ALL P4, P3; SEL R3, 0x1, RZ, P4", 0},
      {"VOTE.ALL P4, P1; SEL R3, 0x1, RZ, P4", 1},
      {"VOTE.ANY P4, P2; SEL R3, 0x1, RZ, P4", 0},
      {"VOTE.EQ P4, P2; SEL R3, 0x1, RZ, P4", 1},
      {"S2R R0, SR_LANEID; ISETP.LT.AND P3, PT, R0, 0x4, PT; VOTE.EQ P4, P3; SEL R3, 0x1, RZ, P4", 0},
      {"S2R R0, SR_EQMASK; S2R R1, SR_LANEID; SHF.R.U32.HI R3, RZ, R1, R0", 1},
      {"S2R R0, SR_LTMASK; S2R R1, SR_LEMASK; S2R R8, SR_EQMASK; IADD3 R3, R1, -R0, -R8", 0},
      {"S2R R0, SR_GTMASK; S2R R1, SR_LEMASK; IADD3 R3, R1, R0, RZ", 0xffffffff},
      {"S2R R0, SR_GEMASK; S2R R1, SR_LTMASK; IADD3 R3, R1, R0, RZ", 0xffffffff},
      {"S2R R0, SR_LANEID; SHFL.IDX PT, R3, R0, 0x7, 0x1f", 7},
      {"S2R R0, SR_LANEID; SHFL.BFLY PT, R1, R0, 0x3, 0x1f; LOP3.LUT R3, R1, R0, RZ, 0x3c, !PT", 3},
      {"S2R R0, SR_LANEID; SHFL.DOWN P3, R1, R0, 0x4, 0x1f; VOTE.ANY R3, PT, P3", 0x0fffffff},
      {"S2R R0, SR_LANEID; SHFL.UP P3, R1, R0, 0x4, RZ; VOTE.ANY R3, PT, P3", 0xfffffff0},
      {"S2R R0, SR_LANEID; SHFL.UP P3, R1, R0, 0x1, RZ; IADD3 R1, R0, -R1, RZ; VOTE.ANY R8, PT, P3; "
       "SEL R3, R1, 0x1, P3",
       1},
      {"S2R R0, SR_LANEID; SHFL.DOWN P3, R1, R0, 0x2, 0x181f; VOTE.ANY R3, PT, P3", 0x3f3f3f3f},
      {"P2R R3, PR, RZ, 0x7", 2},
      {"P2R R3, PR, R2, 0x2", 7},
      {"P2R R3, PR, R2, 0x4", 1},
      {"R2P PR, R2, 0x7; SEL R3, 0x1, RZ, P2", 1},
      {"R2P PR, R2, 0x7; SEL R3, 0x1, RZ, P1", 0},
      {"R2P PR, R2, 0x4; SEL R3, 0x1, RZ, P1", 1},
      {"CS2R R8, SRZ; MOV R3, R9", 0},
      {"CS2R.32 R8, SRZ; MOV R3, R8", 0},
  };
  for (const Result& row : results) EXPECT_TRUE(gives(row.instructions, row.r3)) << row.instructions;
}

// As ptxas spills predicates: R7 holds nothing but the bits that are set.
TEST(Interpreter, BitsOfARegisterThatHeldNothingAreKnown) {
  const Sass sass = Code()
                        .add("LOP3.LUT R7, R7, 0xfffffffd, RZ, 0xc0, !PT", stall(5))
                        .add("S2R R0, SR_TID.X", stall(5))
                        .add("ISETP.GT.AND P2, PT, R0, 0x7, PT", stall(5))
                        .add("@P2 LOP3.LUT R7, R7, 0x2, RZ, 0xfc, !PT", stall(5))
                        .add("LOP3.LUT P0, RZ, R7, 0x2, RZ, 0xc0, !PT", stall(5))
                        .add("@P0 LDG.E R4, [R0.64]", stall(1))
                        .add("EXIT", stall(1))
                        .sass();
  const KernelFacts facts = plain_facts();
  Launch launch;
  launch.block = {32, 1, 1};
  Interpreter interpreter(sass, facts, launch);
  const BlockPath path = interpreter.run(0);
  EXPECT_EQ(interpreter.report().unknown_addresses, 0U);
  EXPECT_EQ(path.warps.at(0).executed.at(5).active, 0xffffff00U);
}

TEST(Interpreter, AnInstructionThatItDoesNotKnowLeavesNoValue) {
  const Sass sass = Code().add("FROB R2, R3").add("ISETP.EQ.AND P0, PT, R2, RZ, PT").add("@P0 EXIT").add("EXIT").sass();
  EXPECT_THROW(run_code(sass), Error);
}

// Eight turns of a loop of two turns, with a barrier for two warps.
Sass nested_loops() {
  return Code()
      .add("MOV R1, RZ")
      .label("outer")
      .add("MOV R2, RZ")
      .label("inner")
      .add("IADD3 R2, R2, 0x1, RZ")
      .add("ISETP.LT.AND P0, PT, R2, 0x2, PT")
      .add("@P0 BRA `(inner)")
      .add("BAR.SYNC 0x0")
      .add("IADD3 R1, R1, 0x1, RZ")
      .add("ISETP.LT.AND P0, PT, R1, 0x8, PT")
      .add("@P0 BRA `(outer)")
      .add("EXIT")
      .sass();
}

Launch of_two_warps() {
  Launch launch;
  launch.block = {64, 1, 1};
  return launch;
}

TEST(Interpreter, ProfilesLoopsByOneWarp) {
  const Sass sass = nested_loops();
  const KernelFacts facts = plain_facts();
  const Launch launch = of_two_warps();
  Interpreter interpreter(sass, facts, launch);
  const LoopProfile profile = interpreter.profile(0);
  EXPECT_EQ(profile.instructions, 1U + 8 * 11 + 1);
  EXPECT_EQ(profile.instructions, interpreter.run(0).warps[0].executed.size());
  ASSERT_EQ(profile.loops.size(), 2U);
  EXPECT_EQ(profile.loops[0].branch, 4U);
  EXPECT_EQ(profile.loops[0].turns, 8U);
  EXPECT_EQ(profile.loops[1].branch, 8U);
  EXPECT_EQ(profile.loops[1].turns, 7U);
  EXPECT_EQ(profile.loops[1].first, 12U);
  EXPECT_EQ(profile.loops[1].instructions_of_turn(), 11);
}

TEST(Interpreter, ACutPathIsTheBeginningOfTheWholeOne) {
  const Sass sass = nested_loops();
  const KernelFacts facts = plain_facts();
  const Launch launch = of_two_warps();
  Interpreter interpreter(sass, facts, launch);
  const BlockPath whole = interpreter.run(0), cut = interpreter.run(0, {8, 3});
  for (size_t w = 0; w < 2; ++w) {
    const auto& executed = cut.warps[w].executed;
    ASSERT_EQ(executed.size(), 1U + 3 * 11);
    for (size_t i = 0; i < executed.size(); ++i)
      EXPECT_EQ(executed[i].instruction, whole.warps[w].executed[i].instruction);
  }
}

TEST(Interpreter, EndlessLoopsEnd) {
  const Sass sass = Code().label("again").add("BRA `(again)").sass();
  Launch launch;
  launch.instruction_limit = 1000;
  try {
    run_code(sass, launch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("more than 1000 instructions"));
  }
}

TEST(Interpreter, CodeWithoutAnEndIsAnError) {
  EXPECT_THROW(run_code(Code().add("NOP").sass()), Error);
  EXPECT_THROW(run_code(Code().add("IADD3 R1, R2").sass()), Error);
}

class Lacking : public testing::TestWithParam<const char*> {};

TEST_P(Lacking, AnOperandIsAnError) {
  try {
    run_code(Code().add(GetParam(), stall(5)).add("EXIT", stall(5)).sass());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error);
    EXPECT_THAT(error.what(), testing::HasSubstr("lacks an operand"));
  }
}

INSTANTIATE_TEST_SUITE_P(Instruction, Lacking,
                         testing::Values("BRA", "CALL", "S2R", "S2R SR_TID.X", "MOV", "IADD3", "IMAD 0x1, 0x2, 0x3",
                                         "LDG.E [R2.64]", "LDC", "ISETP.GE 0x1, 0x2", "FADD 0x1, 0x2",
                                         "SHFL.IDX 0x1, 0x2, 0x3", "P2R 0x1, 0x2", "ELECT R1", "BMOV 0x1", "BSYNC"));

TEST(Interpreter, NothingIsBehindTheLastRegister) {
  const BlockPath path = run_code(Code()
                                      .add("STS.128 [RZ], R254", stall(5))
                                      .add("LDS.128 R252, [RZ]", stall(5))
                                      .add("STG.E [R252.64], R0", stall(5))
                                      .add("EXIT", stall(5))
                                      .sass());
  ASSERT_EQ(path.warps[0].accesses.size(), 3U);
}

// Sums of halves are data; only instructions that the interpreter has never heard of are told.
TEST(Interpreter, TellsOfUnknownInstructionsAndNotOfArithmeticOfHalves) {
  const auto unknown = [](const std::string& instruction) {
    const Sass sass = Code().add(instruction, stall(5)).add("EXIT", stall(5)).sass();
    const KernelFacts facts = plain_facts();
    const Launch launch;
    Interpreter interpreter(sass, facts, launch);
    (void)interpreter.run(0);
    return interpreter.report().unknown_opcodes;
  };
  for (const char* known : {"HADD2.F32 R4, -RZ, R2.H0_H0", "HMUL2 R4, R2, R3", "HMNMX2 R4, R2, R3, PT"}) {
    EXPECT_THAT(unknown(known), testing::IsEmpty()) << known;
  }
  EXPECT_THAT(unknown("HNEW2 R4, R2, R3"), testing::ElementsAre(testing::Pair("HNEW2", 1)));
}

// It keeps references: a temporary would be gone when a block is run.
static_assert(std::is_constructible_v<Interpreter, Sass&, KernelFacts&, Launch&>);
static_assert(!std::is_constructible_v<Interpreter, Sass, KernelFacts&, Launch&>);
static_assert(!std::is_constructible_v<Interpreter, Sass&, KernelFacts, Launch&>);
static_assert(!std::is_constructible_v<Interpreter, Sass&, KernelFacts&, Launch>);
static_assert(!std::is_constructible_v<Interpreter, Sass, KernelFacts, Launch>);

TEST(Interpreter, RefusesALaunchThatCannotBe) {
  const Sass sass = Code().add("EXIT").sass();
  const KernelFacts facts = plain_facts();
  Launch launch;
  launch.block = {2048, 1, 1};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
  launch.block = {1, 0, 1};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
  launch.block = {uint32_t{1} << 31, 2, 1};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
  launch.block = {32, 1, 1};
  launch.grid = {1, 1, 0};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
  launch.grid = {1, uint32_t{1} << 16, 1};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
  launch.grid = {1, 1, 1};
  launch.cluster = {0, 1, 1};
  EXPECT_THROW(Interpreter(sass, facts, launch), Error);
}

}  // namespace
}  // namespace kiln::timing::interpreter_test
