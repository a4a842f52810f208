#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
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

TEST(Interpreter, AnInstructionThatItDoesNotKnowLeavesNoValue) {
  const Sass sass = Code().add("FROB R2, R3").add("ISETP.EQ.AND P0, PT, R2, RZ, PT").add("@P0 EXIT").add("EXIT").sass();
  EXPECT_THROW(run_code(sass), Error);
}

// Eight turns of a loop of two turns, with a barrier for two warps.
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
