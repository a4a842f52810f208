#include "kiln/execution/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "kiln/base/error.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/expression.h"
#include "recording_driver.h"

namespace kiln::execution::executable_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const cuda_abi::CUstream stream = reinterpret_cast<cuda_abi::CUstream>(uint64_t{7});

Launch kernel(std::string entry, std::vector<Argument> arguments) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.arguments = std::move(arguments);
  return launch;
}

CompiledProgram compiled(std::vector<Step> steps, int64_t workspace = 0) {
  CompiledProgram program;
  program.program.sources = {"source"};
  program.program.steps = std::move(steps);
  program.program.workspace_bytes = workspace;
  program.images = {{"the ptx", "the cubin", {}}};
  return program;
}

float as_float(uint64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

TEST(Executable, PassesOperandsByNameAndNullForWhatTheRequestHasNot) {
  RecordingDriver driver;
  driver.arguments_read = 3;
  const Executable executable(
      driver.fake.context(),
      compiled({kernel("k", {OperandArgument{"y"}, OperandArgument{"bias"}, OperandArgument{"x"}})}), {"x", "y"});
  executable.run(stream, std::vector<cuda_abi::CUdeviceptr>{100, 200}, {}, 1, 0);
  ASSERT_THAT(driver.launches, SizeIs(1));
  EXPECT_THAT(driver.launches[0].arguments, ElementsAre(200, 0, 100));
  EXPECT_EQ(driver.launches[0].stream, 7U);
}

TEST(Executable, PassesTheTensorsOfUserCodeInTheirOrder) {
  RecordingDriver driver;
  driver.arguments_read = 1;
  const Executable executable(driver.fake.context(), compiled({kernel("k", {UserArgument{}})}),
                              {"x", "epilogue.gate", "y", "prologue.shift"});
  executable.run(stream, std::vector<cuda_abi::CUdeviceptr>{100, 200, 300, 400}, {}, 1, 0);
  const Executable without(driver.fake.context(), compiled({kernel("k", {UserArgument{}})}), {"x", "y"});
  without.run(stream, std::vector<cuda_abi::CUdeviceptr>{100, 200}, {}, 1, 0);
  ASSERT_THAT(driver.launches, SizeIs(2));
  EXPECT_THAT(driver.launches[0].arguments, ElementsAre(200));
  EXPECT_THAT(driver.launches[1].arguments, ElementsAre(0));
}

// As struct UserArguments: pointers, at least one, then the scalars.
TEST(Executable, PassesTheScalarsOfUserCodeBehindItsTensors) {
  RecordingDriver driver;
  driver.arguments_read = 1;
  driver.argument_words = 3;
  RunValues values;
  values.scalars = {0.5F, 1.5F, 2.5F, 3.5F};
  const auto scalars = [](float low, float high) {
    return uint64_t{std::bit_cast<uint32_t>(low)} | uint64_t{std::bit_cast<uint32_t>(high)} << 32;
  };
  struct Row {
    std::vector<std::string> operands;
    std::vector<uint64_t> words;
  };
  for (const Row& row : {Row{{"x"}, {0, scalars(0.5F, 1.5F), scalars(2.5F, 3.5F)}},
                         Row{{"epilogue.a"}, {100, scalars(0.5F, 1.5F), scalars(2.5F, 3.5F)}},
                         Row{{"epilogue.a", "epilogue.b"}, {100, 200, scalars(0.5F, 1.5F)}}}) {
    const Executable executable(driver.fake.context(), compiled({kernel("k", {UserArgument{}})}), row.operands);
    const std::vector<cuda_abi::CUdeviceptr> addresses = {100, 200};
    executable.run(stream, std::span(addresses).first(row.operands.size()), values, 1, 0);
    EXPECT_EQ(driver.launches.back().arguments, row.words) << row.operands.back();
  }
}

TEST(Executable, PassesScalarsInTheirTypes) {
  RecordingDriver driver;
  driver.arguments_read = 5;
  const Executable executable(
      driver.fake.context(),
      compiled({kernel("k", {Scalar::clip_hi, Scalar::n, Scalar::beta, Scalar::alpha, Scalar::clip_lo})}), {});
  executable.run(stream, {}, {.alpha = 2, .beta = 3, .clip_lo = -4, .clip_hi = 5}, int64_t{1} << 40, 0);
  const std::vector<uint64_t>& arguments = driver.launches.at(0).arguments;
  EXPECT_EQ(as_float(arguments[0]), 5);
  EXPECT_EQ(arguments[1], uint64_t{1} << 40);
  EXPECT_EQ(as_float(arguments[2]), 3);
  EXPECT_EQ(as_float(arguments[3]), 2);
  EXPECT_EQ(as_float(arguments[4]), -4);
}

TEST(Executable, AddsOffsetsToTheWorkspaceOfEachCall) {
  RecordingDriver driver;
  driver.arguments_read = 3;
  const Executable executable(
      driver.fake.context(),
      compiled({kernel("k", {WorkspaceArgument{256}, WorkspaceArgument{0}, WorkspaceArgument{256}})}, 512), {});
  executable.run(stream, {}, {}, 1, 10000);
  executable.run(stream, {}, {}, 1, 20000);
  EXPECT_THAT(driver.launches.at(0).arguments, ElementsAre(10256, 10000, 10256));
  EXPECT_THAT(driver.launches.at(1).arguments, ElementsAre(20256, 20000, 20256));
}

TEST(Executable, AddsOffsetsToOperands) {
  RecordingDriver driver;
  driver.arguments_read = 4;
  const Executable executable(driver.fake.context(),
                              compiled({kernel("k", {OperandArgument{"y", 8}, OperandArgument{"y"},
                                                     OperandArgument{"x", 8}, OperandArgument{"bias", 8}})}),
                              {"x", "y"});
  executable.run(stream, std::vector<cuda_abi::CUdeviceptr>{100, 200}, {}, 1, 0);
  EXPECT_THAT(driver.launches.at(0).arguments, ElementsAre(208, 200, 108, 0));
}

TEST(Executable, PassesTheScalarsOfTheOperation) {
  RecordingDriver driver;
  driver.arguments_read = 2;
  const Executable executable(driver.fake.context(), compiled({kernel("k", {OperationScalar{1}, OperationScalar{5}})}),
                              {});
  RunValues values;
  values.operation_scalars = {1, 2, 3, 4, 5, 6};
  executable.run(stream, {}, values, 1, 0);
  const std::vector<uint64_t>& arguments = driver.launches.at(0).arguments;
  EXPECT_EQ(as_float(arguments[0]), 2);
  EXPECT_EQ(as_float(arguments[1]), 6);
}

TEST(Executable, PassesTheIntegersOfTheOperationWhole) {
  RecordingDriver driver;
  driver.arguments_read = 2;
  const Executable executable(driver.fake.context(),
                              compiled({kernel("k", {OperationInteger{1}, OperationInteger{0}})}), {});
  RunValues values;
  values.operation_integers = {0x0123456789abcdef, 0xfedcba9876543210};
  executable.run(stream, {}, values, 1, 0);
  EXPECT_THAT(driver.launches.at(0).arguments, testing::Contains(0xfedcba9876543210));
  EXPECT_EQ(driver.launches.at(0).arguments[1], 0x0123456789abcdef);
}

TEST(Executable, RunsItsStepsInOrder) {
  RecordingDriver driver;
  const Executable executable(driver.fake.context(),
                              compiled({ClearWorkspace{0, 64}, kernel("k", {}), ClearWorkspace{64, 3}}, 256), {});
  executable.run(stream, {}, {}, 1, 4096);
  EXPECT_THAT(driver.steps, ElementsAre("clear 4096 16x4", "launch", "clear 4160 3x1"));
}

TEST(Executable, ClearsInWordsWhereBothEndsAreOfWords) {
  RecordingDriver driver;
  const Executable executable(driver.fake.context(),
                              compiled({ClearWorkspace{4, 8}, ClearWorkspace{2, 8}, ClearWorkspace{4, 6}}, 256), {});
  executable.run(stream, {}, {}, 1, 4096);
  EXPECT_THAT(driver.steps, ElementsAre("clear 4100 2x4", "clear 4098 8x1", "clear 4100 6x1"));
}

TEST(Executable, RemembersThatARunWasCaptured) {
  RecordingDriver driver;
  driver.fake.table.cuStreamIsCapturing = [](cuda_abi::CUstream of, cuda_abi::CUstreamCaptureStatus* status) {
    *status = of == stream ? cuda_abi::CU_STREAM_CAPTURE_STATUS_ACTIVE : cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE;
    return cuda_abi::CUDA_SUCCESS;
  };
  const Executable executable(driver.fake.context(), compiled({kernel("k", {})}), {"x"});
  EXPECT_EQ(executable.image_bytes(), driver.images[0].size());
  const std::vector<cuda_abi::CUdeviceptr> operands = {100};
  executable.run(nullptr, operands, {}, 1, 0);
  EXPECT_FALSE(executable.is_captured());
  executable.run(stream, operands, {}, 1, 0);
  executable.run(nullptr, operands, {}, 1, 0);
  EXPECT_TRUE(executable.is_captured()) << "the graph has it still";
}

TEST(Executable, TakesTheGridFromTheBatchOfTheCall) {
  RecordingDriver driver;
  Launch launch = kernel("k", {});
  launch.grid = {Count{0, 100, 32}, Count{2, 0, 1}, Count{1, 1, 1}};
  launch.block = {64, 2, 1};
  const Executable executable(driver.fake.context(), compiled({launch}), {});
  executable.run(stream, {}, {}, 3, 0);
  executable.run(stream, {}, {}, 1, 0);
  EXPECT_THAT(driver.launches.at(0).grid, ElementsAre(10, 2, 4));
  EXPECT_THAT(driver.launches.at(1).grid, ElementsAre(4, 2, 2));
  EXPECT_THAT(driver.launches.at(0).block, ElementsAre(64, 2, 1));
}

TEST(Executable, StartsNothingForAnEmptyGrid) {
  for (size_t i = 0; i < 3; ++i) {
    RecordingDriver driver;
    Launch dynamic = kernel("dynamic", {}), fixed = kernel("fixed", {});
    dynamic.grid[i] = Count{0, 8, 4};
    fixed.grid[i] = Count{0, 0, 1};
    const Executable executable(driver.fake.context(), compiled({dynamic, fixed}), {});
    executable.run(stream, {}, {}, 0, 0);
    EXPECT_THAT(driver.launches, IsEmpty()) << i;
    executable.run(stream, {}, {}, 1, 0);
    EXPECT_THAT(driver.launches, SizeIs(1)) << i;
  }
}

TEST(Executable, RefusesAGridThatNoDeviceTakes) {
  const int64_t most[] = {most_blocks_in_x, most_blocks_in_y, most_blocks_in_y};
  for (size_t i = 0; i < 3; ++i) {
    RecordingDriver driver;
    Launch launch = kernel("k", {});
    launch.grid[i] = Count{0, 1, 1};
    const Executable executable(driver.fake.context(), compiled({launch}), {});
    executable.run(stream, {}, {}, most[i], 0);
    EXPECT_EQ(driver.launches.at(0).grid[i], most[i]);
    EXPECT_THROW(executable.run(stream, {}, {}, most[i] + 1, 0), Error) << i;
    EXPECT_THAT(driver.launches, SizeIs(1));
  }
}

TEST(Executable, LoadsTheCubinOnARealDeviceAndBothOnTheEmulatedOne) {
  RecordingDriver driver;
  const CompiledProgram program = compiled({kernel("k", {})});
  const Executable real(driver.fake.context(), program, {});
  const auto emulated = device::Driver::from_table(driver.fake.table, "an emulator", true);
  const Executable other(device::ContextHandle::acquire(device::Device(emulated, 0)), program, {});
  EXPECT_THAT(driver.images, ElementsAre("the cubin", testing::StartsWith("\x50\xED\x55\xBA")));  // a fat binary
}

TEST(Executable, PermitsLargeDynamicSharedMemoryOnceAtLoad) {
  RecordingDriver driver;
  driver.static_shared = 1000;
  Launch launch = kernel("k", {});
  // The fake device has 8000 bytes per block without opting in (attribute 8).
  launch.dynamic_shared_bytes = 7001;
  const Executable executable(driver.fake.context(), compiled({launch}), {});
  executable.run(stream, {}, {}, 1, 0);
  executable.run(stream, {}, {}, 1, 0);
  EXPECT_THAT(driver.permitted_shared, ElementsAre(7001));
  EXPECT_EQ(driver.launches.at(1).dynamic_shared, 7001U);
}

TEST(Executable, NeedsNoPermissionForLittleSharedMemory) {
  RecordingDriver driver;
  driver.static_shared = 1000;
  Launch launch = kernel("k", {});
  launch.dynamic_shared_bytes = 7000;
  const Executable executable(driver.fake.context(), compiled({launch}), {});
  driver.static_shared = 8001;  // a matter of the compiler and the driver
  launch.dynamic_shared_bytes = 0;
  const Executable without_any(driver.fake.context(), compiled({launch}), {});
  EXPECT_THAT(driver.permitted_shared, IsEmpty());
}

TEST(Executable, RefusesABlockThatItsRegistersDoNotAllow) {
  RecordingDriver driver;
  const auto load = [&](int most, std::array<unsigned, 3> block) {
    driver.max_threads = most;
    Launch launch = kernel("k", {});
    launch.block = block;
    Executable(driver.fake.context(), compiled({launch}), {});
  };
  using Block = std::array<unsigned, 3>;
  for (const Block& block : {Block{257, 1, 1}, Block{1, 257, 1}, Block{1, 1, 257}, Block{16, 4, 5}}) {
    EXPECT_THROW(load(256, block), Error) << block[0] << " x " << block[1] << " x " << block[2];
  }
  for (const Block& block : {Block{256, 1, 1}, Block{1, 256, 1}, Block{1, 1, 256}, Block{16, 4, 4}}) {
    EXPECT_NO_THROW(load(256, block)) << block[0] << " x " << block[1] << " x " << block[2];
  }
  EXPECT_NO_THROW(load(0, {1024, 1, 1})) << "a driver that does not tell";
}

TEST(Executable, RefusesAKernelOfASourceThatItHasNot) {
  RecordingDriver driver;
  Launch launch = kernel("k", {});
  launch.source = 1;
  try {
    Executable(driver.fake.context(), compiled({launch}), {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.message(), testing::HasSubstr("kernel k is of source 1, but the program has 1"));
  }
}

TEST(Executable, RefusesAWrongNumberOfOperandsBeforeAnyLaunch) {
  RecordingDriver driver;
  const Executable executable(driver.fake.context(), compiled({kernel("k", {})}), {"x", "y"});
  EXPECT_THROW(executable.run(stream, std::vector<cuda_abi::CUdeviceptr>{1}, {}, 1, 0), Error);
  EXPECT_THAT(driver.launches, IsEmpty());
}

// The most that a table of values holds: operands, addresses behind them, and arguments of one kernel.
TEST(Executable, TakesAsManyValuesAsItsTableHolds) {
  RecordingDriver driver;
  const std::vector<Argument> equal(Executable::max_values, Argument{WorkspaceArgument{256}});
  driver.arguments_read = Executable::max_values;
  const Executable wide(driver.fake.context(), compiled({kernel("k", equal)}), {});
  wide.run(stream, {}, {}, 1, 4096);
  EXPECT_THAT(driver.launches.at(0).arguments, testing::Each(4096 + 256));

  driver.arguments_read = 0;
  const auto takes = [&](size_t operands, int offsets) {
    std::vector<Argument> arguments;
    for (int i = 1; i <= offsets; ++i) arguments.emplace_back(WorkspaceArgument{256 * i});
    try {
      Executable(driver.fake.context(), compiled({kernel("k", arguments)}), std::vector<std::string>(operands, "x"));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.message(), testing::HasSubstr("more than 128 values"));
      return false;
    }
  };
  size_t most = 0;
  while (most < Executable::max_values && takes(most + 1, 0)) ++most;
  EXPECT_GT(most, 60U) << "more than any operation has";
  EXPECT_LT(most, Executable::max_values);
  for (const int offsets : {1, 2, 10}) {
    EXPECT_TRUE(takes(most - static_cast<size_t>(offsets), offsets)) << offsets;
    EXPECT_FALSE(takes(most - static_cast<size_t>(offsets) + 1, offsets)) << offsets;
  }
}

TEST(Executable, RefusesMoreTensorsOfUserCodeThanAnExpressionMayHave) {
  RecordingDriver driver;
  const auto load = [&](size_t tensors) {
    std::vector<std::string> operands;
    for (size_t i = 0; i < tensors; ++i) operands.push_back("epilogue.t" + std::to_string(i));
    Executable(driver.fake.context(), compiled({kernel("k", {UserArgument{}})}), operands);
  };
  EXPECT_NO_THROW(load(Expression::max_tensors));
  EXPECT_THROW(load(Expression::max_tensors + 1), Error);
}

TEST(Executable, RefusesMoreValuesThanItsTableHolds) {
  RecordingDriver driver;
  const std::vector<Argument> many(Executable::max_values + 1, Argument{Scalar::n});
  EXPECT_THROW(Executable(driver.fake.context(), compiled({kernel("k", many)}), {}), Error);
  EXPECT_THROW(Executable(driver.fake.context(), compiled({}), std::vector<std::string>(Executable::max_values, "x")),
               Error);
  std::vector<Argument> offsets;
  for (int i = 0; i < static_cast<int>(Executable::max_values); ++i) offsets.emplace_back(WorkspaceArgument{256 * i});
  EXPECT_THROW(Executable(driver.fake.context(), compiled({kernel("k", offsets)}), {}), Error);
}

TEST(Executable, MakesItsContextCurrentAndPutsBackWhatWasThere) {
  RecordingDriver driver;
  const Executable executable(driver.fake.context(), compiled({kernel("k", {})}), {});
  driver.fake.contexts = {51};
  driver.fake.calls.clear();
  executable.run(stream, {}, {}, 1, 0);
  EXPECT_THAT(driver.fake.calls, ElementsAre("push 100", "pop"));
  EXPECT_THAT(driver.fake.contexts, ElementsAre(51));
}

}  // namespace
}  // namespace kiln::execution::executable_test
