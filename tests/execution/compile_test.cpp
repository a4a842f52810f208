// Needs an NVRTC, no device.
#include "kiln/execution/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/execution/target.h"
#include "kiln/execution/user_code_error.h"
#include "kiln/generator/expression.h"

namespace kiln::execution::compile_test {
namespace {

using testing::HasSubstr;

class CompileTest : public testing::Test {
 protected:
  static Program program(std::vector<std::string> sources, const std::vector<Argument>& arguments = {}) {
    Program made;
    for (size_t i = 0; i < sources.size(); ++i) {
      Launch launch;
      launch.source = i;
      launch.entry = "k" + std::to_string(i);
      launch.arguments = arguments;
      made.steps.emplace_back(launch);
    }
    made.sources.assign(sources.begin(), sources.end());
    return made;
  }

  std::shared_ptr<const device::Nvrtc> nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  Target target = target_for(9, 0, *nvrtc);
};

TEST_F(CompileTest, GivesPtxCubinAndResourcesOfEverySource) {
  const CompiledProgram compiled =
      compile(*nvrtc,
              program({"extern \"C\" __global__ void k0(float* y) { __shared__ float s[64]; s[threadIdx.x] = 1; "
                       "__syncthreads(); y[0] = s[0]; }",
                       "extern \"C\" __global__ void k1(float* y) { y[0] = 2; }"},
                      {OperandArgument{"y"}}),
              target);
  ASSERT_EQ(compiled.images.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(compiled.images[i].ptx, HasSubstr(".entry k" + std::to_string(i)));
    EXPECT_THAT(compiled.images[i].cubin, testing::StartsWith("\x7f"
                                                              "ELF"));
    ASSERT_EQ(compiled.images[i].resources.size(), 1U);
  }
  EXPECT_EQ(compiled.peak_resources().static_shared, 256);
  EXPECT_GT(compiled.seconds, 0);
}

TEST_F(CompileTest, LeavesOutPtxasWherePtxIsAllThatIsWanted) {
  const Program source = program({"extern \"C\" __global__ void k0(float* y) { y[0] = 2; }"}, {OperandArgument{"y"}});
  const CompiledProgram whole = compile(*nvrtc, source, target);
  const CompiledProgram ptx = compile(*nvrtc, source, target, nullptr, Products::ptx);
  EXPECT_EQ(ptx.images[0].ptx, whole.images[0].ptx);
  EXPECT_TRUE(ptx.images[0].cubin.empty());
  EXPECT_TRUE(ptx.images[0].resources.empty());
}

TEST_F(CompileTest, NamesKernelAndLineOfAnError) {
  try {
    compile(*nvrtc, program({"extern \"C\" __global__ void k0() {\n  oops;\n}"}), target);
    ADD_FAILURE() << "an error was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_THAT(error.what(), HasSubstr("k0.cu(2)"));
  }
}

// Where the text is the user's: whoever wrote it sees its lines, and not the kernel's.
TEST_F(CompileTest, TellsAnErrorInUserCodeFromOneInTheKernel) {
  const std::string source =
      "extern \"C\" __global__ void k0() {\n#line 7 \"" + std::string(user_code_file) + "\"\n  oops;\n}";
  try {
    compile(*nvrtc, program({source}), target);
    ADD_FAILURE() << "an error was not noticed";
  } catch (const UserCodeError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_THAT(error.message(), HasSubstr("does not compile:\nline 7, column 3: identifier \"oops\" is undefined"));
  }
}

TEST_F(CompileTest, RefusesALaunchWithTooFewArguments) {
  const std::string source =
      "struct S { float a[7]; };\nextern \"C\" __global__ void k0(float* y, S s, long long n) {}";
  EXPECT_NO_THROW(compile(*nvrtc, program({source}, {OperandArgument{"y"}, UserArgument{}, Scalar::n}), target));
  try {
    compile(*nvrtc, program({source}, {OperandArgument{"y"}, Scalar::n}), target);
    ADD_FAILURE() << "a missing argument was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_THAT(error.what(), HasSubstr("kernel k0 has 3 parameters, but its launch gives it 2 arguments"));
  }
}

TEST_F(CompileTest, RefusesALaunchWithArgumentsOfAnotherKind) {
  const std::string source =
      "struct S { float a[7]; };\nextern \"C\" __global__ void k0(float* y, S s, float alpha, unsigned long long n) {}";
  const auto refusal = [&](std::vector<Argument> arguments) -> std::string {
    try {
      compile(*nvrtc, program({source}, std::move(arguments)), target, nullptr, Products::ptx);
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::compile_failed);
      return error.what();
    }
  };
  const Argument y = OperandArgument{"y"}, part = WorkspaceArgument{0, 4}, user = UserArgument{};
  EXPECT_EQ(refusal({y, user, Scalar::alpha, Scalar::n}), "");
  EXPECT_EQ(refusal({part, user, OperationScalar{1}, OperationInteger{0}}), "");
  EXPECT_THAT(refusal({y, user, Scalar::clip_lo, Scalar::beta}),
              HasSubstr("kernel k0: argument 4 (beta) is a float, but the kernel declares a pointer or an integer of 8 "
                        "bytes there"));
  EXPECT_THAT(refusal({y, user, Scalar::n, Scalar::n}),
              HasSubstr("argument 3 (n) is a pointer or an integer of 8 bytes, but the kernel declares a float there"));
  EXPECT_THAT(refusal({user, y, Scalar::alpha, Scalar::n}), HasSubstr("argument 1 (what user code reads)"));
  EXPECT_THAT(refusal({y, part, Scalar::alpha, Scalar::n}), HasSubstr("declares struct UserArguments there"));
  EXPECT_THAT(refusal({OperationScalar{2}, user, Scalar::alpha, Scalar::n}), HasSubstr("(number 2 of the operation)"));
}

TEST_F(CompileTest, TellsATensorMapFromAStruct) {
  const std::string source =
      "struct alignas(64) TensorMap { unsigned long long opaque[16]; };\nstruct S { float* a[2]; };\n"
      "extern \"C\" __global__ void k0(const __grid_constant__ TensorMap map, S s) {}";
  TensorMapArgument map{.memory = OperandArgument{"x"}};
  EXPECT_NO_THROW(compile(*nvrtc, program({source}, {map, UserArgument{}}), target, nullptr, Products::ptx));
  try {
    compile(*nvrtc, program({source}, {UserArgument{}, map}), target, nullptr, Products::ptx);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("argument 1 (what user code reads) is struct UserArguments, but the kernel "
                                        "declares a tensor map there"));
  }
}

TEST_F(CompileTest, RefusesAParameterOfATypeThatNoArgumentHas) {
  for (const char* type : {"int", "double", "short"}) {
    const std::string source = std::string("extern \"C\" __global__ void k0(") + type + " n) {}";
    try {
      compile(*nvrtc, program({source}, {Scalar::n}), target, nullptr, Products::ptx);
      ADD_FAILURE() << type << " was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("but the kernel declares something else there"));
    }
  }
}

TEST_F(CompileTest, HasADigestOfEverythingThatShapesTheBinary) {
  const Program one = program({"extern \"C\" __global__ void k0() {}"});
  const Program other = program({"extern \"C\" __global__ void k0() { }"});
  EXPECT_EQ(compile_digest(*nvrtc, one, target), compile_digest(*nvrtc, one, target));
  EXPECT_NE(compile_digest(*nvrtc, one, target), compile_digest(*nvrtc, other, target));
  EXPECT_NE(compile_digest(*nvrtc, one, target), compile_digest(*nvrtc, one, target_for(8, 0, *nvrtc)));
  EXPECT_NE(compile_digest(*nvrtc, one, target), compile_digest(*nvrtc, one, target, Products::ptx));
}

TEST_F(CompileTest, RefusesACapabilityThatNobodyKnows) {
  EXPECT_THROW(target_for(3, 5, *nvrtc), Error);
}

}  // namespace
}  // namespace kiln::execution::compile_test
