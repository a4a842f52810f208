// The trusted program of a request: its steps in their order, and constants of its kernels.
#include "kiln/checking/trusted_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln::checking::trusted_program_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::built_in_catalogue;

const Target target = testing_support::target_of(8, 0);

Request coded(const std::string& line, const std::string& code) {
  return Request::parse(line + " epilogue=user:code", {{"code", Expression(code)}});
}

Program program_of(const Request& request) {
  return trusted_program(built_in_catalogue(), request, target);
}

// Entries of the launches, and operands that each of them is given.
std::vector<std::string> launches_of(const Program& program) {
  std::vector<std::string> launches;
  for_each_launch(program.steps, [&](const Launch& launch) {
    std::string text = launch.entry;
    for (const Argument& argument : launch.arguments) {
      if (const auto* const operand = std::get_if<OperandArgument>(&argument)) text += " " + operand->name;
    }
    EXPECT_TRUE(program.sources.at(launch.source).code.find(" " + launch.entry + "(") != std::string::npos) << text;
    launches.push_back(text);
  });
  return launches;
}

TEST(TrustedPrograms, AreTheOperationBetweenThePrologueAndTheBounds) {
  const std::string conv = "conv_forward x=f32:2x3x5x7 w=f32:4x3x3x3";
  const Program plain = program_of(Request::parse(conv + " y=f32:2x4x3x5"));
  EXPECT_THAT(launches_of(plain), ElementsAre("conv_simple x w y bias residual"));
  const Program both = program_of(coded(conv, "--- prologue\n2.0f * x\n---\nacc + 1.0f"));
  EXPECT_THAT(launches_of(both), ElementsAre("user_prologue input x perturbation", "conv_simple x w y bias residual",
                                             "user_bounds y margin low high"));
  EXPECT_EQ(both.sources.back().code, program_of(without_user_code(coded(conv, "acc"))).sources.back().code)
      << "behind those with the user's text, which are compiled first";
  const Program epilogue = program_of(coded(conv, "acc + 1.0f"));
  EXPECT_THAT(launches_of(epilogue), ElementsAre("conv_simple x w y bias residual", "user_bounds y margin low high"));
}

TEST(TrustedPrograms, KeepTheWorkspaceOfTheOperation) {
  const std::string line = "cross_entropy_forward x=f32:300x12 reduction=mean";
  const Program plain = program_of(Request::parse(line));
  ASSERT_GT(plain.workspace_bytes, 0);
  const Program made = program_of(coded(line, "acc * 2.0f"));
  EXPECT_EQ(made.workspace_bytes, plain.workspace_bytes);
  EXPECT_EQ(made.steps.size(), plain.steps.size() + 1);
}

TEST(TrustedPrograms, TakeOperandsOfTheCodeBesides) {
  const auto names = [](const std::string& line) { return trusted_operand_names(Request::parse(line)); };
  const std::string code = " epilogue=user:00000000000000000000000000000000";
  EXPECT_THAT(names("gemm a=f32:3x5 b=f32:5x7"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names("reduce x=f32:3x5 axes=1 mode=add" + code),
              ElementsAre("x", "y", "margin", "low", "high", "input", "perturbation"));
  EXPECT_THAT(names("tensor_set y=f32:3x5" + code), ElementsAre("y", "margin", "low", "high"))
      << "it has no input that a prologue could be of";
}

// The value of a constant in the source of the launch of that entry.
std::string constant(const Program& program, const std::string& entry, const std::string& name) {
  std::string found = "none";
  for_each_launch(program.steps, [&](const Launch& launch) {
    if (launch.entry != entry) return;
    const std::string& code = program.sources.at(launch.source).code;
    const size_t at = code.find(" " + name + " = ");
    if (at != std::string::npos) found = code.substr(at + name.size() + 4, code.find(';', at) - at - name.size() - 4);
  });
  return found;
}

// Elements of a channel that lie side by side, and channels; 1 of both where there are none.
TEST(TrustedPrograms, FindTheChannelOfEachElement) {
  const auto shape = [](const std::string& line, const std::string& entry) {
    const Program program = program_of(coded(line, "--- prologue\n2.0f * x\n---\nacc + 1.0f"));
    return constant(program, entry, "INNER") + " x " + constant(program, entry, "CHANNELS") + " of " +
           constant(program, entry, "ELEMENTS");
  };
  const std::string conv = "conv_forward x=f32:2x3x5x7 w=f32:4x3x3x3";
  EXPECT_EQ(shape(conv, "user_prologue"), "35 x 3 of 210");
  EXPECT_EQ(shape(conv, "user_bounds"), "15 x 4 of 120");
  const std::string bias = "conv_backward_bias dy=f32:2x8x5x3";
  EXPECT_EQ(shape(bias, "user_prologue"), "15 x 8 of 240");
  EXPECT_EQ(shape(bias, "user_bounds"), "1 x 1 of 8") << "a vector knows no channels";
  const std::string gemm = "gemm a=f32:6x5 b=f32:5x7";
  EXPECT_EQ(shape(gemm, "user_bounds"), "1 x 7 of 42");
  const std::string empty = "conv_forward x=f32:0x3x5x7 w=f32:4x3x3x3";
  EXPECT_EQ(shape(empty, "user_bounds"), "15 x 4 of 0");
}

struct Threads {
  int threads;
};

// A catalogue of one trusted algorithm, of reductions of f32 with several rows.
Catalogue one_algorithm() {
  return Catalogue(
      SourceLibrary(std::map<std::string, std::string>{
          {"lib/types.cuh", "using f32 = float;\n"}, {"op/k.cu", "int k();\n"}, {"op/k.cpp", "descriptor"}}),
      {describe<Threads>("least", "reduce", "op/k.cu")
           .trusted()
           .param("THREADS", &Threads::threads, {64, 128})
           .rule("there are rows",
                 [](const Threads&, const Request& request, const Target&) { return request.at("x").extents[0] > 1; })
           .applies([](const Request& request, const Target&) -> std::optional<std::string> {
             if (request.at("x").dtype != DType::f32) return "x is not f32";
             return std::nullopt;
           })
           .program([](const Threads& t, const Request&, const Target&, const Emitter& emit) {
             Program program;
             program.sources = {emit.source(Prelude().constant("THREADS", t.threads))};
             return program;
           })
           .estimate([](const Threads&, const Request&, const Target&, const DeviceFigures&) { return Estimate(); })});
}

TEST(TrustedPrograms, SayWhyThereIsNone) {
  const Catalogue catalogue = one_algorithm();
  const auto error = [&](const std::string& line) {
    try {
      trusted_program(catalogue, Request::parse(line), target);
    } catch (const Error& thrown) {
      return std::pair(thrown.code(), std::string(thrown.what()));
    }
    return std::pair(ErrorCode::internal, std::string("none"));
  };
  EXPECT_EQ(error("reduce x=f32:4x2 axes=1 mode=add").second, "none");
  const auto [refusal, why] = error("reduce x=f16:4x2 axes=1 mode=add");
  EXPECT_EQ(refusal, ErrorCode::invalid_argument);
  EXPECT_THAT(why, HasSubstr("least: x is not f32"));
  const auto [lack, what] = error("reduce x=f32:1x2 axes=1 mode=add");
  EXPECT_EQ(lack, ErrorCode::internal);
  EXPECT_THAT(what, HasSubstr("the trusted algorithm least has no legal configuration for reduce x=f32:1x2"));
  const Program made = trusted_program(catalogue, Request::parse("reduce x=f32:4x2 axes=1 mode=add"), target);
  EXPECT_NE(made.sources[0].code.find("THREADS = 64;"), std::string::npos) << "the first legal one";
}

}  // namespace
}  // namespace kiln::checking::trusted_program_test
