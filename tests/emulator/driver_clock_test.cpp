// The clock that reads machine code: what a fat binary brings beside its PTX.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "clock_fixture.h"
#include "fat_images.h"
#include "kiln/timing/time_model.h"

namespace kiln::emulator::testing::driver_clock_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

const std::string machine_code = fmt::format("machine code {}", timing::model_version);
// The time depends on `turns`, on the number that `choice` holds, and on where `in` lies in a line.
const std::string kernels = R"(
extern "C" __global__ void scale(float* out, const float* in, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  for (int t = 0; t < turns; ++t) x = x * 1.5f + 0.5f;
  out[i] = x;
}
extern "C" __global__ void copy(float* out, const float* in) {
  for (int i = threadIdx.x; i < 10000; i += blockDim.x) out[i] = in[i];
}
extern "C" __global__ void choose(float* out, const int* choice) {
  float x = threadIdx.x;
  for (int t = 0; t < *choice; ++t) x = __sinf(x);
  out[threadIdx.x] = x;
}
extern "C" __global__ void pick(float* out, const float* in, const int* places) {
  out[threadIdx.x] = in[places[threadIdx.x]];
}
extern "C" __global__ void divide(float* out, const float* in) {
  out[threadIdx.x] = in[threadIdx.x] / in[threadIdx.x + 32] + sqrtf(in[threadIdx.x]);
}
__constant__ int bounds[4] = {3, 0, 7, 1};
extern "C" __global__ void table(float* out) {
  if (bounds[blockIdx.x % 4] == 0) return;
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}
extern "C" __global__ void least(float* out, int n, int begin) {
  const int end = min(min(n, 1000) + begin, 500);
  float x = 0;
  for (int i = 0; i < end; ++i) x = __sinf(x) + 1;
  out[threadIdx.x] = x;
}
extern "C" __global__ void wait(int* out) {
  atomicAdd(out, 1);
  while (*(volatile int*)out == 0) {}
}
extern "C" __global__ void ticket(int* out) {
  if (atomicAdd(out, 1) != gridDim.x - 1) return;
  out[1] = 1;
}
)";

class DriverClock : public ClockTest {
 protected:
  explicit DriverClock(const Variables& environment = machine_clock, const std::string& arch = "sm_80")
      : ClockTest(kernels, environment, arch) {}

  nlohmann::json scale(CUdeviceptr out, CUdeviceptr in, int turns) {
    return run("scale", {&out, &in, &turns}, 300, 256);
  }
};

std::string name_of(const Emulator& cuda) {
  std::array<char, 256> name = {};
  EXPECT_EQ(cuda.cuDeviceGetName(name.data(), name.size(), 0), CUDA_SUCCESS);
  return name.data();
}

TEST_F(DriverClock, TellsTimesByMachineCode) {
  EXPECT_EQ(name_of(cuda), fmt::format("Kiln emulated NVIDIA A100 (machine-code clock {})", timing::model_version));
  const CUdeviceptr in = numbers(300 * 256), out = numbers(300 * 256);
  const nlohmann::json few = scale(out, in, 100), many = scale(out, in, 10'000);
  EXPECT_EQ(few["clock"], machine_code);
  EXPECT_EQ(few["guessed_branches"], 0);
  EXPECT_TRUE(few["unknown_instructions"].empty());
  // 300 blocks on 108 SMs: the busiest has three, whose 24 warps each turn 10,000 times, and a scheduler issues a
  // multiply-add every two cycles: 6 x 2 x 10,000 at 1,410 MHz.
  EXPECT_NEAR(many["seconds"].get<double>(), 6 * 2 * 10'000 / 1.41e9, 0.1 * 6 * 2 * 10'000 / 1.41e9);
  EXPECT_LT(few["seconds"].get<double>(), 0.15 * many["seconds"].get<double>());
  EXPECT_THAT(many["bound"].get<std::string>(), StartsWith("fma 9"));
  EXPECT_GT(many["units"]["fma"].get<double>(), 0.9);
}

TEST_F(DriverClock, IsThatOfEvents) {
  const CUdeviceptr in = numbers(300 * 256), out = numbers(300 * 256);
  const CUevent start = event(), end = event();
  EXPECT_EQ(cuda.cuEventRecord(start, nullptr), CUDA_SUCCESS);
  const nlohmann::json told = scale(out, in, 1000);
  EXPECT_EQ(cuda.cuEventRecord(end, nullptr), CUDA_SUCCESS);
  EXPECT_NEAR(elapsed(start, end), told["seconds"].get<double>() * 1e3 + 1.5e-3, 1e-6) << "the card's event_ns";
}

TEST_F(DriverClock, TakesTheSameTimeWhereverOperandsLie) {
  const size_t count = 300 * 256;
  const std::string told = scale(numbers(count), numbers(count), 50).dump();
  (void)allocate(12'345);  // what comes next lies elsewhere
  const CUdeviceptr in = numbers(count), out = numbers(count);
  EXPECT_EQ(scale(out, in, 50).dump(), told);
  const Emulator other(machine_clock);
  CUcontext there = nullptr;
  CUmodule module = nullptr;
  CUfunction scale_there = nullptr;
  std::array<CUdeviceptr, 2> buffers = {};
  const std::string image = fat(compiled_);
  ASSERT_EQ(other.cuDevicePrimaryCtxRetain(&there, 0), CUDA_SUCCESS);
  ASSERT_EQ(other.cuCtxSetCurrent(there), CUDA_SUCCESS);
  ASSERT_EQ(other.cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(other.cuModuleGetFunction(&scale_there, module, "scale"), CUDA_SUCCESS);
  for (CUdeviceptr& buffer : buffers) ASSERT_EQ(other.cuMemAlloc_v2(&buffer, count * 4), CUDA_SUCCESS);
  const std::vector<float> zeros(count);
  ASSERT_EQ(other.cuMemcpyHtoD_v2(buffers[1], zeros.data(), count * 4), CUDA_SUCCESS);
  int turns = 50;
  void* parameters[] = {buffers.data(), &buffers[1], &turns};
  ASSERT_EQ(other.cuLaunchKernel(scale_there, 300, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(nlohmann::json::parse(other.last_launch())["modelled_time"].dump(), told);
}

TEST_F(DriverClock, LaunchesOfEqualParametersMayDifferInAllElse) {
  CUdeviceptr in = numbers(2000 * 256), out = numbers(2000 * 256);
  int turns = 100;
  std::vector<double> seconds;
  const auto tell = [&](const nlohmann::json& told) {
    EXPECT_EQ(told["clock"], machine_code) << told.dump();
    seconds.push_back(told["seconds"]);
  };
  const std::vector<void*> parameters = {&out, &in, &turns};
  tell(run("scale", parameters, 2000, 256));
  tell(run("scale", parameters, 100, 256));
  tell(run("scale", parameters, 2000, 64));
  tell(run("scale", parameters, 2000, 256, 48 << 10));  // three blocks on an SM, not eight
  EXPECT_THAT(seconds, ::testing::ElementsAre(::testing::_, ::testing::Lt(seconds[0] / 2),
                                              ::testing::Lt(seconds[0] * 0.6), ::testing::Gt(seconds[0])));
  const double divided = run("divide", {&out, &in})["seconds"];
  EXPECT_GT(run("copy", {&out, &in})["seconds"], 2 * divided);
}

TEST_F(DriverClock, LaunchesMayDifferInEveryExtent) {
  CUdeviceptr in = numbers(2000), out = numbers(2000);
  int turns = 100;
  std::vector<void*> parameters = {&out, &in, &turns};
  ASSERT_EQ(cuda.function<int(int)>("kiln_emulator_time_only")(1), 1);  // run, their blocks would race
  const auto seconds = [&](std::array<unsigned, 3> grid, std::array<unsigned, 3> block) {
    EXPECT_EQ(cuda.cuLaunchKernel(function(module_, "scale"), grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                  0, nullptr, parameters.data(), nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
    return nlohmann::json::parse(cuda.last_launch())["modelled_time"]["seconds"].get<double>();
  };
  const double one = seconds({1, 1, 1}, {32, 1, 1});
  EXPECT_GT(seconds({1, 1, 1}, {32, 32, 1}), one) << "32 warps for one";
  EXPECT_GT(seconds({1, 1, 1}, {32, 1, 32}), one);
  EXPECT_GT(seconds({1, 5000, 1}, {32, 1, 1}), one);
  EXPECT_GT(seconds({1, 1, 5000}, {32, 1, 1}), one);
}

TEST_F(DriverClock, TracesALaunchWhoseTimeIsKnown) {
  const CUdeviceptr in = numbers(300 * 256), out = numbers(300 * 256);
  const double seconds = scale(out, in, 10)["seconds"];
  EXPECT_FALSE(nlohmann::json::parse(cuda.last_launch()).contains("trace"));
  cuda.function<void(uint64_t)>("kiln_emulator_trace_launches")(100);
  EXPECT_EQ(scale(out, in, 10)["seconds"], seconds);
  EXPECT_EQ(nlohmann::json::parse(cuda.last_launch())["trace"]["instructions"], 100);
  cuda.function<void(uint64_t)>("kiln_emulator_trace_launches")(0);
  (void)scale(out, in, 10);
  EXPECT_FALSE(nlohmann::json::parse(cuda.last_launch()).contains("trace"));
}

TEST_F(DriverClock, CountsTheLinesThatAnOffsetAdds) {
  const size_t count = 300 * 256;
  const CUdeviceptr in = numbers(count + 1), out = numbers(count);
  EXPECT_LT(scale(out, in, 1)["units"]["L2"], scale(out, in + 4, 1)["units"]["L2"]);
}

TEST_F(DriverClock, ReadsTheDataThatDecide) {
  CUdeviceptr out = numbers(32), choice = allocate(4);
  const auto with = [&](uint32_t turns) {
    put(choice, {turns});
    const nlohmann::json told = run("choose", {&out, &choice});
    EXPECT_EQ(told["clock"], machine_code) << told.dump();
    return told["seconds"].get<double>();
  };
  const double few = with(10), many = with(1000);
  EXPECT_GT(many, 2 * few);
  EXPECT_EQ(with(10), few) << "the data may change between equal launches";
}

TEST_F(DriverClock, ReadsTheDataThatAreAddresses) {
  CUdeviceptr out = numbers(32), in = numbers(size_t{32} * 64), places = allocate(32 * 4);
  const auto with = [&](uint32_t distance) {
    std::vector<uint32_t> words(32);
    for (uint32_t i = 0; i < 32; ++i) words[i] = i * distance;
    put(places, words);
    const nlohmann::json told = run("pick", {&out, &in, &places});
    EXPECT_EQ(told["unknown_addresses"], 0) << told.dump();
    return told["seconds"].get<double>();
  };
  const double near = with(1);
  EXPECT_GT(with(64), near);
  EXPECT_EQ(with(1), near) << "the data may change between equal launches";
}

TEST_F(DriverClock, PassesByWhatIsCalledForExtraordinaryNumbers) {
  CUdeviceptr out = numbers(32), in = numbers(64);
  EXPECT_EQ(run("divide", {&out, &in})["clock"], machine_code);
}

TEST_F(DriverClock, TakesWaitsForOtherBlocksForOver) {
  CUdeviceptr out = allocate(4);
  put(out, {0});
  const nlohmann::json told = run("wait", {&out}, 1, 1);
  EXPECT_EQ(told["clock"], machine_code) << told.dump();
  EXPECT_GT(told["guessed_branches"].get<int>(), 0);
}

TEST_F(DriverClock, KnowsConstantVariables) {
  CUdeviceptr out = numbers(size_t{8} * 32);
  const nlohmann::json told = run("table", {&out}, 8);
  EXPECT_EQ(told["clock"], machine_code) << told.dump();
}

TEST_F(DriverClock, TellsTheSameWithoutRunningAnything) {
  const size_t count = 300 * 256;
  const CUdeviceptr in = numbers(count), out = numbers(count);
  const std::string told = scale(out, in, 50).dump();
  const auto time_only = cuda.function<int(int)>("kiln_emulator_time_only");
  ASSERT_EQ(time_only(1), 1);
  put(out, std::vector<uint32_t>(count, 7));
  EXPECT_EQ(cuda.function<CUresult(CUdeviceptr, unsigned, size_t)>("cuMemsetD32_v2")(out, 9, count), CUDA_SUCCESS);
  EXPECT_EQ(scale(out, in, 50).dump(), told);
  EXPECT_EQ(time_only(0), 1);
  std::vector<float> after(count);
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(after.data(), out, count * 4), CUDA_SUCCESS);
  EXPECT_GT(after[0], 1e9F) << "what was run is there, and nothing else";
  put(out, std::vector<uint32_t>(count, 0x3f800000));
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(after.data(), out, count * 4), CUDA_SUCCESS);
  EXPECT_EQ(after[0], 1.0F) << "and so is what comes after";
}

TEST_F(DriverClock, RefusesToTimeAloneWhatDataDecide) {
  CUdeviceptr out = numbers(32), choice = allocate(4), in = numbers(64), places = allocate(32 * 4);
  put(choice, {10});
  put(places, std::vector<uint32_t>(32));
  const auto time_only = cuda.function<int(int)>("kiln_emulator_time_only");
  const double run_seconds = run("choose", {&out, &choice})["seconds"];
  ASSERT_EQ(time_only(1), 1);
  std::array<void*, 3> chosen = {&out, &choice}, picked = {&out, &in, &places};
  EXPECT_EQ(cuda.cuLaunchKernel(function(module_, "choose"), 1, 1, 1, 32, 1, 1, 0, nullptr, chosen.data(), nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuda.cuLaunchKernel(function(module_, "pick"), 1, 1, 1, 32, 1, 1, 0, nullptr, picked.data(), nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(time_only(0), 1);
  EXPECT_EQ(run("choose", {&out, &choice})["seconds"], run_seconds) << "the context is as well as before";
}

TEST_F(DriverClock, IsThatOfPtxWhereMachineCodeDoesNotTell) {
  CUdeviceptr out = allocate(8);
  put(out, {0, 0});
  const nlohmann::json drawn = run("ticket", {&out}, 1, 1);
  EXPECT_EQ(drawn["clock"], "ptx");
  EXPECT_THAT(drawn["not_by_machine_code"].get<std::string>(), HasSubstr("depends on data"));
  module_ = load(compiled_.ptx);
  put(out, {0, 0});
  const nlohmann::json plain = run("ticket", {&out}, 1, 1);
  EXPECT_EQ(plain["clock"], "ptx");
  EXPECT_EQ(plain["not_by_machine_code"], "the module has no machine code for this device");
  EXPECT_EQ(plain["seconds"], drawn["seconds"]);
}

TEST_F(DriverClock, GivesTheRegistersOfTheCompiler) {
  int registers = 0;
  ASSERT_EQ(cuda.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function(module_, "scale")), CUDA_SUCCESS);
  const auto scale = std::find_if(compiled_.resources.begin(), compiled_.resources.end(),
                                  [](const device::KernelResources& kernel) { return kernel.name == "scale"; });
  ASSERT_NE(scale, compiled_.resources.end());
  EXPECT_EQ(registers, scale->registers);
}

TEST_F(DriverClock, TakesTheMachineCodeThatTheDeviceCouldRun) {
  CUdeviceptr out = numbers(32), in = numbers(64);
  module_ = load_fat(fat(compile(kernels, "sm_75")));
  EXPECT_EQ(run("divide", {&out, &in})["clock"], "ptx") << "of another major version";
}

TEST_F(DriverClock, LooksAtTheMachineCodeItselfForItsArchitecture) {
  CUdeviceptr out = numbers(32), in = numbers(64);
  module_ = load_fat(FatBinary().add(1, 80, compiled_.ptx).add(2, 80, compile(kernels, "sm_90").cubin).bytes());
  const nlohmann::json told = run("divide", {&out, &in});
  EXPECT_EQ(told["clock"], "ptx");
  EXPECT_THAT(told["not_by_machine_code"].get<std::string>(), HasSubstr("the machine code is of sm_90"));
}

class DriverClockOnA10 : public DriverClock {
 protected:
  DriverClockOnA10() : DriverClock({{"KILN_EMULATOR_CLOCK", "machine"}, {"KILN_EMULATOR_DEVICE", "a10"}}, "sm_86") {}
};

TEST_F(DriverClockOnA10, TakesTheNewestMachineCodeThatTheDeviceCouldRun) {
  const auto turning = [](const char* arch, int turns) {
    const std::string kernel = R"(extern "C" __global__ void turn(float* out) {
      float x = threadIdx.x;
      for (int t = 0; t < TURNS; ++t) x = __sinf(x);
      out[threadIdx.x] = x;
    })";
    return compile("#define TURNS " + std::to_string(turns) + "\n" + kernel, arch);
  };
  const device::Compiled old = turning("sm_80", 100), own = turning("sm_86", 400), newer = turning("sm_89", 1600);
  CUdeviceptr out = numbers(32);
  const auto seconds = [&](const FatBinary& image) {
    module_ = load_fat(image.bytes());
    const nlohmann::json told = run("turn", {&out});
    EXPECT_EQ(told["clock"], machine_code) << told.dump();
    return told["seconds"].get<double>();
  };
  const auto ptx = [&] { return FatBinary().add(1, 80, old.ptx); };
  const double by_old = seconds(ptx().add(2, 80, old.cubin)), by_own = seconds(ptx().add(2, 86, own.cubin));
  EXPECT_GT(by_own, 2 * by_old);
  EXPECT_EQ(seconds(ptx().add(2, 80, old.cubin).add(2, 86, own.cubin).add(2, 89, newer.cubin)), by_own);
  EXPECT_EQ(seconds(ptx().add(2, 89, newer.cubin).add(2, 80, old.cubin)), by_old);
}

class DriverClockOnHopper : public DriverClock {
 protected:
  DriverClockOnHopper()
      : DriverClock({{"KILN_EMULATOR_CLOCK", "machine"}, {"KILN_EMULATOR_DEVICE", "h200"}}, "sm_90") {}
};

TEST_F(DriverClockOnHopper, KnowsTheLesserOfASumAndANumber) {
  EXPECT_EQ(name_of(cuda), fmt::format("Kiln emulated NVIDIA H200 (machine-code clock {})", timing::model_version));
  CUdeviceptr out = numbers(500);
  int n = 400, begin = 0;
  const nlohmann::json many = run("least", {&out, &n, &begin});
  EXPECT_EQ(many["clock"], machine_code) << many.dump();
  begin = -380;  // 20 turns of the loop, not 400
  EXPECT_LT(run("least", {&out, &n, &begin})["seconds"].get<double>(), many["seconds"].get<double>() / 2);
}

class DriverClockByPtx : public DriverClock {
 protected:
  DriverClockByPtx() : DriverClock({{"KILN_EMULATOR_CLOCK", "ptx"}, {"KILN_EMULATOR_DEVICE", "a100"}}) {}
};

TEST_F(DriverClockByPtx, LeavesMachineCodeAlone) {
  EXPECT_EQ(name_of(cuda), "Kiln emulated NVIDIA A100");
  const nlohmann::json told = scale(numbers(300 * 256), numbers(300 * 256), 10);
  EXPECT_EQ(told["clock"], "ptx");
  EXPECT_FALSE(told.contains("not_by_machine_code"));
  EXPECT_EQ(cuda.function<int(int)>("kiln_emulator_time_only")(1), 0) << "what is not run has no time";
  EXPECT_EQ(scale(numbers(300 * 256), numbers(300 * 256), 10), told) << "and everything is run";
}

// Message of cuInit about settings that do not fit.
std::string refusal_of(const Variables& environment) {
  Emulator cuda({}, false);
  CaptureStderr();
  EXPECT_NE(cuda.initialise(environment), CUDA_SUCCESS);
  return GetCapturedStderr();
}

std::string card_file(const std::map<std::string, std::string>& replacements, const std::string& name = "slow.card") {
  std::ifstream built_in(KILN_A100_CARD);
  std::ostringstream text;
  text << built_in.rdbuf();
  std::string card = text.str();
  for (const auto& [from, to] : replacements) card.replace(card.find(from), from.size(), to);
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << card;
  return path;
}

std::string card_file(const std::string& from, const std::string& to, const std::string& name = "slow.card") {
  return card_file(std::map<std::string, std::string>{{from, to}}, name);
}

std::string name_with_card(const std::string& path) {
  Variables environment = machine_clock;
  environment["KILN_EMULATOR_CARD"] = path;
  return name_of(Emulator(environment));
}

TEST(DriverClockSettings, MayNameACard) {
  const std::string slow = name_with_card(card_file("clock_mhz 1410", "clock_mhz 705"));
  EXPECT_THAT(slow, MatchesRegex(R"(Kiln emulated NVIDIA A100 \(machine-code clock [0-9]+ of slow [0-9a-f]{8}\))"));
  EXPECT_NE(name_with_card(card_file("clock_mhz 1410", "clock_mhz 704")), slow) << "edited figures are another device";
  EXPECT_EQ(name_with_card(card_file("clock_mhz 1410  [whitepaper]", "clock_mhz 705  measured")), slow);
}

TEST(DriverClockSettings, KeepNamesOfCardsToWhatADeviceMayBeCalled) {
  EXPECT_THAT(name_with_card(card_file("", "", "my \"card\", (a).b.card")), HasSubstr(" of my__card____a_.b "));
  EXPECT_THAT(name_with_card(card_file("", "", std::string(200, 'x'))), HasSubstr(" of " + std::string(40, 'x') + " "));
  EXPECT_THAT(name_with_card(card_file("", "", "a100")), HasSubstr(" of a100 ")) << "it is not the built-in one";
}

// A kernel is chosen by what the driver tells, and timed by the card.
TEST(DriverClockSettings, ADeviceHasTheCountsOfTheUsersCard) {
  const auto attributes = [](const Variables& environment) {
    const Emulator cuda(environment);
    std::vector<int> values;
    for (const CUdevice_attribute name :
         {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
          CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
          CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN}) {
      EXPECT_EQ(cuda.cuDeviceGetAttribute(&values.emplace_back(), name, 0), CUDA_SUCCESS) << name;
    }
    return values;
  };
  const int kib = 1024;
  EXPECT_THAT(attributes(machine_clock),
              ElementsAre(108, 1'410'000, 1'593'000, 40 * kib * kib, 2048, 32, 164 * kib, 163 * kib));
  Variables environment = machine_clock;
  environment["KILN_EMULATOR_CARD"] = card_file({{"sms 108", "sms 54"},
                                                 {"clock_mhz 1410", "clock_mhz 705"},
                                                 {"dram_peak_gbs 1555", "dram_peak_gbs 1280"},
                                                 {"l2_bytes 41943040", "l2_bytes 20971520"},
                                                 {"warps 64", "warps 48"},
                                                 {"blocks 32", "blocks 16"},
                                                 {"shared_bytes 167936", "shared_bytes 102400"}});
  EXPECT_THAT(attributes(environment),
              ElementsAre(54, 705'000, 1'000'000, 20 * kib * kib, 1536, 16, 100 * kib, 99 * kib));
}

TEST(DriverClockSettings, SayWhatIsWrong) {
  EXPECT_THAT(refusal_of({{"KILN_EMULATOR_CLOCK", "fast"}}), HasSubstr(R"(neither "machine" nor "ptx")"));
  Variables environment = machine_clock;
  environment["KILN_EMULATOR_CARD"] = "/nonexistent.card";
  EXPECT_THAT(refusal_of(environment), HasSubstr("KILN_EMULATOR_CARD: cannot read the card /nonexistent.card"));
  environment["KILN_EMULATOR_CARD"] = card_file("arch 80", "arch 90");
  EXPECT_THAT(refusal_of(environment), HasSubstr("of compute capability 9.0, and a100 has 8.0"));
  environment["KILN_EMULATOR_CARD"] = card_file("sms 108", "sms many");
  EXPECT_THAT(refusal_of(environment), HasSubstr("sms is many, and has to be a whole number"));
  environment["KILN_EMULATOR_CARD"] = "";
  EXPECT_THAT(refusal_of(environment), HasSubstr("KILN_EMULATOR_CARD is empty"));
  environment["KILN_EMULATOR_CARD"] = card_file("", "");
  environment["KILN_EMULATOR_CLOCK"] = "ptx";
  EXPECT_THAT(refusal_of(environment), HasSubstr("which KILN_EMULATOR_CLOCK=ptx does not time"));
}

TEST(DriverClockSettings, NeedNvdisasmForMachineCode) {
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm")) GTEST_SKIP() << "it is found in /usr/local/cuda";
  const Variables nowhere = {{"PATH", "/nonexistent"}, {"VIRTUAL_ENV", "/nonexistent"}, {"CUDA_HOME", "/nonexistent"}};
  Variables demanded = nowhere;
  demanded["KILN_EMULATOR_CLOCK"] = "machine";
  EXPECT_THAT(refusal_of(demanded), HasSubstr("nvdisasm was not found in /nonexistent"));
  unsetenv("KILN_EMULATOR_CLOCK");
  Variables with_card = nowhere;
  with_card["KILN_EMULATOR_CARD"] = card_file("", "");
  EXPECT_THAT(refusal_of(with_card), HasSubstr("KILN_EMULATOR_CARD: nvdisasm was not found"));
  EXPECT_THAT(name_of(Emulator(nowhere)), Not(HasSubstr("machine"))) << "by itself it does without";
  Variables broken = nowhere;
  broken["PATH"] = ::testing::TempDir() + "broken";
  std::filesystem::create_directories(broken["PATH"]);
  std::ofstream(broken["PATH"] + "/nvdisasm") << "#!/bin/sh\nexit 1\n";
  std::filesystem::permissions(broken["PATH"] + "/nvdisasm", std::filesystem::perms::owner_all);
  EXPECT_THAT(name_of(Emulator(broken)), Not(HasSubstr("machine"))) << "nor does it take one that does not work";
  setenv("KILN_EMULATOR_CLOCK", "ptx", 1);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_clock_test
