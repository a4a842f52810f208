// Figures of machine code, their limits, and the committed table of limits: what bench_machine_code is made of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "code_limits.h"
#include "code_reader.h"
#include "kernel_folder.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bench::machine_code_test {
namespace {

using testing::HasSubstr;

// Code by its opcodes; "BRA 2" goes to instruction number 2.
timing::Sass code_of(const std::vector<std::string>& lines) {
  timing::Sass sass;
  for (const std::string& line : lines) {
    timing::Instruction instruction;
    instruction.address = static_cast<uint32_t>(sass.instructions.size()) * timing::instruction_bytes;
    instruction.opcode = line.substr(0, line.find(' '));
    if (instruction.opcode != line) {
      timing::Operand operand;
      operand.kind = timing::Operand::Kind::label;
      operand.value = std::stoi(line.substr(line.find(' '))) * static_cast<int64_t>(timing::instruction_bytes);
      instruction.operands.push_back(operand);
    }
    sass.instructions.push_back(instruction);
  }
  return sass;
}

KernelCode figures_of(const std::vector<std::string>& lines) {
  timing::KernelFacts facts;
  facts.name = "kernel";
  facts.registers = 40;
  return kernel_code(code_of(lines), facts);
}

TEST(KernelCode, CountsTheInstructionsOfTheLoopThatMultiplies) {
  const KernelCode code =
      figures_of({"MOV", "HMMA", "LDGSTS", "LDSM", "LDSM", "HMMA", "HMMA", "IADD3", "BRA 2", "STG", "EXIT"});
  EXPECT_EQ(code.kernel, "kernel");
  EXPECT_EQ(code.registers, 40);
  EXPECT_EQ(code.local_instructions, 0u);
  EXPECT_EQ(code.main_loop.instructions(), 7u);
  EXPECT_EQ(code.main_loop.tensor_instructions(), 2u);
  EXPECT_EQ(code.main_loop.per_product(), 3.5);
  EXPECT_EQ(code.main_loop.count("LDSM"), 2u);
  EXPECT_EQ(code.main_loop.count("LDGSTS"), 1u);
  EXPECT_EQ(code.main_loop.count("STG"), 0u);
}

TEST(KernelCode, TakesTheInnermostLoopWithTheMostProducts) {
  // A loop without products; one with two products, in an outer one with three.
  const KernelCode code = figures_of(
      {"MOV", "IADD3", "IADD3", "BRA 1", "HMMA", "HMMA", "IMMA", "IADD3", "BRA 5", "BRA 4", "QMMA", "BRA 10"});
  EXPECT_EQ(code.main_loop.instructions(), 4u);
  EXPECT_EQ(code.main_loop.tensor_instructions(), 2u);
}

TEST(KernelCode, TakesTheLongestOfLoopsWithEquallyManyProducts) {
  const KernelCode code = figures_of({"HMMA", "BRA 0", "HMMA", "MOV", "MOV", "BRA 2", "HMMA", "MOV", "BRA 6"});
  EXPECT_EQ(code.main_loop.instructions(), 4u);
}

TEST(KernelCode, CountsSpillsWhereverTheyStand) {
  EXPECT_EQ(figures_of({"STL", "HMMA", "LDL", "BRA 1", "LDL", "LDG", "STS"}).local_instructions, 3u);
}

TEST(KernelCode, HasNoMainLoopWithoutALoopOfProducts) {
  const KernelCode code = figures_of({"HMMA", "BRA 3", "HMMA", "MOV", "BRA 3"});
  EXPECT_EQ(code.main_loop.instructions(), 0u);
  EXPECT_EQ(code.main_loop.per_product(), 0);
}

constexpr const char* request_line = "gemm a=f16:64x64 b=f16:64x64\n";

TEST(TableOfLimits, HasALimitForEachVariantAndArchitecture) {
  const auto limits = parse_code_limits(
      "# a comment\n"
      "gemm a=f16:64x64 b=f16:64x64  # a request\n"
      "  gemm_tensor default\n"
      "    80 90: registers<=200 instructions<=2.25\n"
      "\n"
      "    120: registers<=210 instructions<=3\n"
      "  gemm_tensor_staged BLOCK_K=32,BLOCK_M=64\n"
      "    75: registers<=100 instructions<=9\n"
      "gemm a=bf16:32x32 b=bf16:32x32\n"
      "  gemm_tensor default\n"
      "    80: registers<=1 instructions<=1 spills<=7\n");
  ASSERT_EQ(limits.size(), 5u);
  EXPECT_EQ(limits[0].request.key(), Request::parse("gemm a=f16:64x64 b=f16:64x64").key());
  EXPECT_EQ(limits[0].algorithm, "gemm_tensor");
  EXPECT_TRUE(limits[0].is_of_default());
  EXPECT_EQ(limits[0].arch, Arch::of(8, 0));
  EXPECT_EQ(limits[0].registers, 200);
  EXPECT_EQ(limits[0].per_product, 2.25);
  EXPECT_EQ(limits[0].line, 4u);
  EXPECT_EQ(limits[0].spills, 0u);
  EXPECT_EQ(limits[1].arch, Arch::of(9, 0));
  EXPECT_EQ(limits[1].per_product, 2.25);
  EXPECT_EQ(limits[2].arch, Arch::of(12, 0));
  EXPECT_EQ(limits[2].registers, 210);
  EXPECT_EQ(limits[2].per_product, 3);
  EXPECT_EQ(limits[3].algorithm, "gemm_tensor_staged");
  EXPECT_EQ(limits[3].config, "BLOCK_K=32,BLOCK_M=64");
  EXPECT_FALSE(limits[3].is_of_default());
  EXPECT_EQ(limits[4].request.key(), Request::parse("gemm a=bf16:32x32 b=bf16:32x32").key());
  EXPECT_EQ(limits[4].spills, 7u);
}

TEST(TableOfLimits, NamesTheLineThatCannotBeRead) {
  struct Case {
    std::string text;
    const char* message;
  };
  const std::string request = request_line, variant = request + "  gemm_tensor default\n";
  for (const Case& c : {
           Case{"  gemm_tensor default\n", "line 1 of the table of limits: a variant before any request"},
           Case{request + "    80: registers<=2 instructions<=2\n",
                "line 2 of the table of limits: limits before any variant"},
           Case{request + "  gemm_tensor\n",
                "line 2 of the table of limits: a variant is an algorithm and a configuration, or 'default'"},
           Case{variant, "line 2 of the table of limits: gemm_tensor before this has no limits"},
           Case{variant + "  gemm_tensor default\n", "line 3 of the table of limits: gemm_tensor before this has no"},
           Case{variant + request, "line 3 of the table of limits: gemm_tensor before this has no limits"},
           Case{variant + "    81: registers<=2 instructions<=2\n",
                "line 3 of the table of limits: there are no kernels for the architecture '81'"},
           Case{variant + "    80: registers<=2\n",
                "line 3 of the table of limits: limits are architectures, a colon, registers<=NUMBER"},
           Case{variant + "    80: registers<=2 instructions<=2 spills<=1 spills<=1\n",
                "line 3 of the table of limits: limits are architectures, a colon, registers<=NUMBER"},
           Case{variant + "    80: registers<=2 instructions<=2 spills<=none\n",
                "line 3 of the table of limits: 'spills<=none' where spills<=NUMBER is expected"},
           Case{variant + "    : registers<=2 instructions<=2\n",
                "line 3 of the table of limits: limits are architectures, a colon, registers<=NUMBER"},
           Case{variant + "    80: registers<=many instructions<=2\n",
                "line 3 of the table of limits: 'registers<=many' where registers<=NUMBER is expected"},
           Case{variant + "    80: registers<=2 instructions<=2x\n",
                "line 3 of the table of limits: 'instructions<=2x' where instructions<=NUMBER is expected"},
           Case{variant + "    80: registers<=2 instructions<=-2\n",
                "line 3 of the table of limits: 'instructions<=-2' where instructions<=NUMBER is expected"},
       }) {
    try {
      parse_code_limits(c.text);
      ADD_FAILURE() << "accepted " << c.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      EXPECT_THAT(error.what(), HasSubstr(c.message));
    }
  }
}

TEST(TableOfLimits, SaysWhichLimitsAreBroken) {
  const CodeLimit limit =
      parse_code_limits(std::string(request_line) + "  gemm_tensor default\n    80: registers<=40 instructions<=2\n")
          .front();
  const std::string name = "gemm_tensor default on sm_80 for " + limit.request.key();
  KernelCode code = figures_of({"HMMA", "BRA 0"});
  EXPECT_EQ(fault_of(limit, code), "");
  code.registers = 41;
  EXPECT_EQ(fault_of(limit, code), "line 3: 41 registers, 40 permitted: " + name);
  code.registers = 40;
  code.local_instructions = 2;
  EXPECT_EQ(fault_of(limit, code), "line 3: 2 loads and stores of spills, 0 permitted: " + name);
  CodeLimit spilling = limit;
  spilling.spills = 2;
  EXPECT_EQ(fault_of(spilling, code), "");
  EXPECT_EQ(fault_of(limit, figures_of({"HMMA", "MOV", "BRA 0"})),
            "line 3: 3.000 instructions for each tensor instruction, 2 permitted: " + name);
  EXPECT_EQ(fault_of(limit, figures_of({"HMMA", "EXIT"})), "line 3: no loop has a tensor instruction: " + name);
}

std::vector<CodeLimit> committed_limits() {
  std::ifstream stream(KILN_CODE_LIMITS, std::ios::binary);
  return parse_code_limits(std::string((std::istreambuf_iterator<char>(stream)), {}));
}

TEST(CommittedLimits, NameEveryAlgorithmOnTensorCores) {
  const std::vector<CodeLimit> limits = committed_limits();
  const Catalogue catalogue = make_catalogue(embedded_sources());
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    if (algorithm.name().find("_tensor") == std::string::npos) continue;
    EXPECT_TRUE(std::any_of(
        limits.begin(), limits.end(),
        [&](const CodeLimit& limit) { return limit.is_of_default() && limit.algorithm == algorithm.name(); }))
        << algorithm.name() << " has no default in " << KILN_CODE_LIMITS;
  }
}

// Null, with the reason, where a program is missing.
std::unique_ptr<CodeReader> reader_at_hand(const Catalogue& catalogue, std::string& reason) {
  CodeReaderOptions options;
  options.nvrtc = Environment::read().nvrtc;
  options.store_folder = testing_support::kernel_folder();
  try {
    return std::make_unique<CodeReader>(catalogue, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::missing_library) throw;
    reason = error.what();
    return nullptr;
  }
}

TEST(CommittedLimits, AreKeptByTheDefaultsOfAllAlgorithms) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  std::string reason;
  const std::unique_ptr<CodeReader> reader = reader_at_hand(catalogue, reason);
  if (reader == nullptr) GTEST_SKIP() << reason;
  constexpr int judged_major = 13;
  if (reader->target(Arch::of(8, 0)).nvrtc_major != judged_major)
    GTEST_SKIP() << "the limits are those of NVRTC 13, this is " << reader->description();
  size_t kept = 0;
  for (const CodeLimit& limit : committed_limits()) {
    if (!limit.is_of_default()) continue;
    if (!reader->supports(limit.arch)) {
      fmt::print("left out: {} has no {}\n", reader->description(), limit.arch.name());
      continue;
    }
    const Choice choice = reader->default_choice(limit.request, limit.arch, limit.algorithm);
    EXPECT_EQ(fault_of(limit, reader->code(limit.request, limit.arch, choice)), "");
    ++kept;
  }
  EXPECT_GT(kept, 0u);
}

// Each of them spilled while the addresses of gathered operands were not counted among a thread's registers, and had
// more blocks an SM.
TEST(StagedOperands, DoNotSpillInNchw) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  std::string reason;
  const std::unique_ptr<CodeReader> reader = reader_at_hand(catalogue, reason);
  if (reader == nullptr) GTEST_SKIP() << reason;
  struct Case {
    const char *request, *algorithm, *config;
    int arch;
  };
  for (const Case& c :
       {Case{"conv_backward_data dy=f16:32x128x28x28 w=f16:128x128x3x3 pad=1", "conv_backward_data_tensor_staged",
             "BLOCK_K=32,BLOCK_M=64,BLOCK_N=32,STAGES=1,WARP_M=64,WARP_N=16", 80},
        Case{"conv_forward x=f16:32x128x28x28 w=f16:128x128x2x2 stride=2", "conv_tensor_staged",
             "BLOCK_K=32,BLOCK_M=128,BLOCK_N=32,STAGES=1,WARP_M=32,WARP_N=32", 75}}) {
    if (!reader->supports(Arch::of(c.arch / 10, c.arch % 10))) continue;
    const Choice choice{c.algorithm, Config::parse(c.config)};
    EXPECT_EQ(reader->code(Request::parse(c.request), Arch::of(c.arch / 10, c.arch % 10), choice).local_instructions,
              0u)
        << c.algorithm << " " << c.config;
  }
}

TEST(CodeReaderTest, SamplesDistinctLegalVariantsTheSameOnesEachTime) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  std::string reason;
  const std::unique_ptr<CodeReader> reader = reader_at_hand(catalogue, reason);
  if (reader == nullptr) GTEST_SKIP() << reason;
  const Request request = Request::parse("gemm a=f16:512x512 b=f16:512x512");
  const auto drawn = [&](size_t count) { return reader->sample(request, Arch::of(8, 0), "gemm_tensor", count); };
  const std::vector<Choice> few = drawn(20), all = drawn(1'000'000);
  ASSERT_EQ(few.size(), 20u);
  EXPECT_EQ(drawn(20), few);
  std::set<std::string> configs;
  for (const Choice& choice : all) {
    configs.insert(choice.config.print());
    EXPECT_EQ(catalogue.refusal(request, reader->target(Arch::of(8, 0)), choice), std::nullopt);
  }
  EXPECT_EQ(configs.size(), all.size());
  EXPECT_GT(all.size(), few.size());
  EXPECT_EQ(std::count(few.begin(), few.end(), reader->default_choice(request, Arch::of(8, 0), "gemm_tensor")), 0)
      << "not simply the first ones";
}

TEST(CodeReaderTest, SaysWhatAVariantCannotDo) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  std::string reason;
  const std::unique_ptr<CodeReader> reader = reader_at_hand(catalogue, reason);
  if (reader == nullptr) GTEST_SKIP() << reason;
  const auto refusal = [&](const char* request, const char* algorithm) -> std::string {
    try {
      reader->default_choice(Request::parse(request), Arch::of(8, 0), algorithm);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("gemm a=f32:64x64 b=f32:64x64", "gemm_tensor"),
              HasSubstr("gemm_tensor refuses gemm a=f32:64x64"));
  EXPECT_THAT(refusal("gemm a=f16:64x64 b=f16:64x64", "gemm_tensors"), HasSubstr("there is no algorithm gemm_tensors"));
}

}  // namespace
}  // namespace kiln::bench::machine_code_test
