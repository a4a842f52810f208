// Attributes of launches, persistent grids, tensor maps and prepared memory, on a driver that writes down what it is
// asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/execution/executable.h"
#include "recording_driver.h"

namespace kiln::execution::launch_kinds_test {
namespace {

using cuda_abi::CUdeviceptr;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const cuda_abi::CUstream stream = reinterpret_cast<cuda_abi::CUstream>(uint64_t{7});

Launch kernel(std::vector<Argument> arguments = {}) {
  Launch launch;
  launch.entry = "k";
  launch.arguments = std::move(arguments);
  return launch;
}

CompiledProgram compiled(std::vector<Step> steps, int64_t workspace = 0, Preparation preparation = {}) {
  CompiledProgram program;
  program.program.sources = {"source"};
  program.program.steps = std::move(steps);
  program.program.workspace_bytes = workspace;
  program.program.preparation = preparation;
  program.images = {{"the ptx", "the cubin", {}}};
  return program;
}

template <class Body>
std::string refusal_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.message();
  }
  return "accepted";
}

class LaunchKinds : public testing::Test {
 protected:
  Executable load(const CompiledProgram& program, const std::vector<std::string>& operands = {}) const {
    return {driver.fake.context(), program, operands};
  }
  RecordedLaunch launched(const Launch& launch, int64_t n = 1) {
    load(compiled({launch})).run(stream, {}, {}, n, 0);
    return driver.launches.at(driver.launches.size() - 1);
  }
  // Attributes of compute capability `major`.0; all others as they are.
  void be_capability(int major) {
    capability = major;
    driver.fake.table.cuDeviceGetAttribute = [](int* value, cuda_abi::CUdevice_attribute attribute,
                                                cuda_abi::CUdevice) {
      *value = attribute == cuda_abi::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability : 1000 * attribute;
      return cuda_abi::CUDA_SUCCESS;
    };
  }

  RecordingDriver driver;
  static int capability;
};
int LaunchKinds::capability = 9;

constexpr int64_t fake_sms = 16000;  // attribute 16

TEST_F(LaunchKinds, PlainLaunchesNeedNoNewEntryPoint) {
  driver.fake.table.cuLaunchKernelEx = nullptr;
  driver.fake.table.cuTensorMapEncodeTiled = nullptr;
  EXPECT_THAT(launched(kernel()).attributes, IsEmpty());
}

TEST_F(LaunchKinds, GivesTheDriverEachAttribute) {
  Launch launch = kernel();
  launch.grid = {Count{3}, Count{2}, Count{5}};
  launch.block = {64, 2, 1};
  launch.dynamic_shared_bytes = 48;
  launch.persistent = true;
  launch.attributes = {.cluster = {2, 1, 4}, .cooperative = false, .programmatic = true};
  const RecordedLaunch made = launched(launch);
  EXPECT_THAT(made.grid, ElementsAre(4, 2, 8)) << "whole clusters";
  EXPECT_THAT(made.block, ElementsAre(64, 2, 1));
  EXPECT_EQ(made.dynamic_shared, 48U);
  EXPECT_EQ(made.stream, 7U);
  ASSERT_THAT(made.attributes, SizeIs(2));
  EXPECT_EQ(made.attributes[0].id, cuda_abi::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  const auto& [x, y, z] = made.attributes[0].value.clusterDim;
  EXPECT_THAT((std::array{x, y, z}), ElementsAre(2, 1, 4));
  EXPECT_EQ(made.attributes[1].id, cuda_abi::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(made.attributes[1].value.programmaticStreamSerializationAllowed, 1);

  launch.attributes = {.cooperative = true};
  const RecordedLaunch cooperative = launched(launch);
  ASSERT_THAT(cooperative.attributes, SizeIs(1));
  EXPECT_EQ(cooperative.attributes[0].id, cuda_abi::CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  EXPECT_EQ(cooperative.attributes[0].value.cooperative, 1);
}

TEST_F(LaunchKinds, RefusesAtLoadWhatTheDriverOrTheDeviceLacks) {
  Launch clusters = kernel(), programmatic = kernel();
  clusters.attributes.cluster = {2, 1, 1};
  programmatic.attributes.programmatic = true;
  be_capability(8);
  EXPECT_THAT(refusal_of([&] { load(compiled({clusters})); }), HasSubstr("unsupported: kernel k runs in clusters"));
  EXPECT_THAT(launched(programmatic).attributes, IsEmpty()) << "what has no effect there is not asked for";
  be_capability(9);
  driver.fake.table.cuLaunchKernelEx = nullptr;
  EXPECT_THAT(refusal_of([&] { load(compiled({clusters})); }),
              HasSubstr("unsupported: the fake driver lacks the entry point cuLaunchKernelEx"));
}

TEST_F(LaunchKinds, CutsAPersistentGridToWhatRunsAtOnce) {
  Launch launch = kernel();
  launch.persistent = true;
  launch.grid = {Count{0, 1000, 1}, Count{4}, Count{1}};
  driver.blocks_per_sm = 3;
  EXPECT_THAT(launched(launch, 1).grid, ElementsAre(1000, 4, 1));
  EXPECT_THAT(launched(launch, 1000).grid, ElementsAre(3 * fake_sms / 4, 4, 1));
  launch.grid[1] = Count{60000};
  EXPECT_THAT(launched(launch, 1).grid, ElementsAre(1, 60000, 1)) << "y and z stay as they are";
  launch.attributes.cluster = {8, 1, 1};
  EXPECT_THAT(launched(launch, 1).grid, ElementsAre(8, 60000, 1));
  launch.grid = {Count{1'000'000}, Count{7}, Count{1}};
  EXPECT_THAT(launched(launch, 1).grid, ElementsAre(3 * fake_sms / 7 / 8 * 8, 7, 1));
  launch.persistent = false;
  EXPECT_THAT(launched(launch, 1).grid, ElementsAre(1'000'000, 7, 1));
}

TEST_F(LaunchKinds, AsksHowManyBlocksOfItsSizeRunAtOnce) {
  Launch launch = kernel();
  launch.persistent = true;
  launch.grid[0] = Count{100};
  launch.block = {32, 4, 2};
  launch.dynamic_shared_bytes = 1234;
  driver.blocks_per_sm = 0;
  EXPECT_THAT(launched(launch).grid, ElementsAre(1, 1, 1)) << "a block of a kernel that does not fit: the launch fails";
  EXPECT_THAT(driver.occupancies, ElementsAre("256 1234"));
}

TensorMapArgument map_of(std::variant<OperandArgument, WorkspaceArgument> memory) {
  return {.memory = std::move(memory),
          .dtype = DType::f16,
          .extents = {Count{56}, Count{28}, Count{0, 3, 1}},
          .byte_strides = {112, 4096},
          .box = {64, 8, 1},
          .swizzle = Swizzle::bytes_128};
}

TEST_F(LaunchKinds, EncodesATensorMapAgainWhenAddressOrBatchChange) {
  driver.arguments_read = 2;
  const Executable executable =
      load(compiled({kernel({map_of(OperandArgument{"x", 64}), OperandArgument{"y"}}), kernel({Scalar::n, Scalar::n})}),
           {"x", "y"});
  const auto run = [&](CUdeviceptr x, int64_t n) {
    executable.run(stream, std::vector<CUdeviceptr>{x, 320}, {}, n, 0);
    return driver.launches.at(driver.launches.size() - 2).arguments;
  };
  EXPECT_THAT(run(1024, 5), ElementsAre(1, 320));
  ASSERT_THAT(driver.maps, SizeIs(1));
  const RecordedMap& map = driver.maps[0];
  EXPECT_EQ(map.type, cuda_abi::CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(map.swizzle, cuda_abi::CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(map.address, 1088U);
  EXPECT_THAT(map.extents, ElementsAre(56, 28, 15));
  EXPECT_THAT(map.strides, ElementsAre(112, 4096));
  EXPECT_THAT(map.box, ElementsAre(64, 8, 1));
  EXPECT_THAT(map.steps, ElementsAre(1, 1, 1));
  EXPECT_THAT(run(1024, 5), ElementsAre(1, 320));
  EXPECT_THAT(driver.maps, SizeIs(1)) << "the same again";
  EXPECT_THAT(run(2048, 5), ElementsAre(2, 320));
  EXPECT_THAT(run(2048, 6), ElementsAre(3, 320));
  EXPECT_EQ(driver.maps.at(2).extents.at(2), 18U);
  EXPECT_THAT(refusal_of([&] { run(2056, 6); }), HasSubstr("invalid argument: a kernel reads memory at 0x848"));
}

TEST_F(LaunchKinds, EncodesAnewAfterARefusal) {
  driver.arguments_read = 1;
  const Executable executable = load(compiled({kernel({map_of(OperandArgument{"x"})})}), {"x"});
  const auto run = [&](CUdeviceptr x) { executable.run(stream, std::vector<CUdeviceptr>{x}, {}, 1, 0); };
  run(1024);
  EXPECT_THAT(refusal_of([&] { run(1032); }), HasSubstr("needs multiples of 16 bytes"));
  run(1024);
  EXPECT_EQ(driver.launches.back().arguments[0], driver.maps.size());
  EXPECT_EQ(driver.maps.back().address, 1024U);
}

TEST_F(LaunchKinds, NamesTypesAndSwizzlesAsTheDriverDoes) {
  const auto encoded = [&](DType dtype, Swizzle swizzle) {
    TensorMapArgument map = map_of(OperandArgument{"x"});
    map.dtype = dtype;
    map.swizzle = swizzle;
    load(compiled({kernel({map})}), {"x"}).run(stream, std::vector<CUdeviceptr>{1024}, {}, 1, 0);
    return std::pair(driver.maps.back().type, driver.maps.back().swizzle);
  };
  using namespace cuda_abi;
  const std::pair<DType, int> types[] = {
      {DType::f32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32},   {DType::f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
      {DType::bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16}, {DType::i32, CU_TENSOR_MAP_DATA_TYPE_INT32},
      {DType::i8, CU_TENSOR_MAP_DATA_TYPE_UINT8},      {DType::u8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
      {DType::f8e4m3, CU_TENSOR_MAP_DATA_TYPE_UINT8},  {DType::f8e5m2, CU_TENSOR_MAP_DATA_TYPE_UINT8}};
  for (const auto& [dtype, type] : types) EXPECT_EQ(encoded(dtype, Swizzle::none).first, type) << to_string(dtype);
  const std::pair<Swizzle, int> swizzles[] = {{Swizzle::none, CU_TENSOR_MAP_SWIZZLE_NONE},
                                              {Swizzle::bytes_32, CU_TENSOR_MAP_SWIZZLE_32B},
                                              {Swizzle::bytes_64, CU_TENSOR_MAP_SWIZZLE_64B},
                                              {Swizzle::bytes_128, CU_TENSOR_MAP_SWIZZLE_128B}};
  for (const auto& [swizzle, name] : swizzles) EXPECT_EQ(encoded(DType::f32, swizzle).second, name);
}

TEST_F(LaunchKinds, GivesAKernelEightTensorMapsAtMost) {
  driver.arguments_read = 8;
  std::vector<Argument> maps(8, map_of(OperandArgument{"x"}));
  load(compiled({kernel(maps)}), {"x"}).run(stream, std::vector<CUdeviceptr>{1024}, {}, 1, 0);
  EXPECT_THAT(driver.launches.back().arguments, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  maps.push_back(maps.front());
  EXPECT_THAT(refusal_of([&] { load(compiled({kernel(maps)}), {"x"}); }), HasSubstr("unsupported: "));
}

TEST_F(LaunchKinds, GivesAMapOfZerosForAnOperandThatTheRequestHasNot) {
  driver.arguments_read = 1;
  load(compiled({kernel({map_of(OperandArgument{"bias", 64})})}), {"x"})
      .run(stream, std::vector<CUdeviceptr>{1024}, {}, 1, 0);
  EXPECT_THAT(driver.launches.at(0).arguments, ElementsAre(0));
  EXPECT_THAT(driver.maps, IsEmpty());
}

TEST_F(LaunchKinds, EncodesTensorMapsOfTheWorkspace) {
  driver.arguments_read = 1;
  const Executable executable = load(compiled({kernel({map_of(WorkspaceArgument{256, 256})})}, 512));
  executable.run(stream, {}, {}, 1, 4096);
  EXPECT_EQ(driver.maps.at(0).address, 4096U + 256);
}

TEST_F(LaunchKinds, RefusesTensorMapsWhereTheDriverHasNone) {
  driver.fake.table.cuTensorMapEncodeTiled = nullptr;
  EXPECT_THAT(refusal_of([&] { load(compiled({kernel({map_of(OperandArgument{"x"})})}), {"x"}); }),
              HasSubstr("unsupported: the fake driver lacks the entry point cuTensorMapEncodeTiled"));
}

// A program with 1024 bytes of workspace: the first step fills the first 256 from w; the second reads those and uses
// the rest.
CompiledProgram with_preparation() {
  return compiled({kernel({OperandArgument{"w"}, WorkspaceArgument{0, 256}}), ClearWorkspace{512, 64},
                   kernel({WorkspaceArgument{16, 16}, WorkspaceArgument{256, 768}})},
                  1024, {.steps = 1, .bytes = 256});
}

TEST_F(LaunchKinds, PreparesOnceAndRunsWithoutThoseSteps) {
  driver.arguments_read = 2;
  const Executable executable = load(with_preparation(), {"x", "w"});
  const std::vector<CUdeviceptr> operands = {300, 400};
  executable.prepare(stream, operands, 8192);
  EXPECT_THAT(driver.steps, ElementsAre("launch"));
  EXPECT_THAT(driver.launches.at(0).arguments, ElementsAre(400, 8192));
  executable.run_prepared(stream, operands, {}, 1, 8192, 65536);
  EXPECT_THAT(driver.steps, ElementsAre("launch", "clear 65792 16x4", "launch"));
  EXPECT_THAT(driver.launches.at(1).arguments, ElementsAre(8192 + 16, 65536));
}

TEST_F(LaunchKinds, RunsAllStepsInOneWorkspaceWhereNothingIsPrepared) {
  driver.arguments_read = 2;
  const Executable executable = load(with_preparation(), {"x", "w"});
  executable.run(stream, std::vector<CUdeviceptr>{300, 400}, {}, 1, 65536);
  EXPECT_THAT(driver.steps, ElementsAre("launch", "clear 66048 16x4", "launch"));
  EXPECT_THAT(driver.launches.at(0).arguments, ElementsAre(400, 65536));
  EXPECT_THAT(driver.launches.at(1).arguments, ElementsAre(65536 + 16, 65536 + 256));
}

TEST_F(LaunchKinds, PreparesNothingOfWhatLaterStepsRead) {
  const std::vector<Step> steps = {kernel({OperandArgument{"w"}}),
                                   kernel({OperandArgument{"x"}, OperandArgument{"w"}})};
  for (const size_t prepared : {0, 1, 2}) {
    const Executable executable = load(compiled(steps, 0, {.steps = prepared, .bytes = 0}), {"x", "w"});
    EXPECT_EQ(executable.prepares(0), prepared > 1) << prepared;
    EXPECT_EQ(executable.prepares(1), prepared > 0) << prepared;
  }
}

TEST_F(LaunchKinds, KnowsWhichOperandsArePrepared) {
  const Executable executable = load(with_preparation(), {"x", "w"});
  EXPECT_FALSE(executable.prepares(0));
  EXPECT_TRUE(executable.prepares(1));
  EXPECT_EQ(executable.preparation(), (Preparation{.steps = 1, .bytes = 256}));
}

}  // namespace
}  // namespace kiln::execution::launch_kinds_test
