// Launches of calibration, and the figures that it makes of their times, on a driver that writes down launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver.h"
#include "kiln/base/environment.h"
#include "kiln/calibration/calibrate.h"

namespace kiln::calibration::counts_test {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the entry points' types
using testing::Each;
using testing::ElementsAre;

constexpr int sms = 5;
constexpr int64_t all_threads = int64_t{sms} * 8 * 256;

struct Launched {
  std::string kernel;
  unsigned blocks = 0, threads = 0;
  std::vector<int64_t> arguments;
};

// Bytes of each argument of the kernels.
const std::map<std::string, std::vector<size_t>> parameters_of = {
    {"copy_memory", {8, 8, 8}}, {"read_memory", {8, 8, 4, 4, 8}}, {"multiply_add", {8, 4, 4, 8}},
    {"read_shared", {8, 8}},    {"multiply_f16", {8, 8}},         {"multiply_f16_in_f16", {8, 8}},
    {"multiply_tf32", {8, 8}},  {"multiply_int8", {8, 8}},        {"multiply_fp8", {8, 8}},
    {"do_nothing", {}}};

// Times of runs in a row, in milliseconds: the first one warms up, and of the next nine 5 is the median.
constexpr float milliseconds_of_runs[] = {100, 9, 1, 8, 2, 7, 3, 6, 4, 5};

struct Recorder {
  std::vector<Launched> launches;        // of which equal ones in a row stand once
  std::vector<size_t> in_a_row;          // how many they are
  std::vector<size_t> runs;              // how often what stands there was timed
  std::map<CUdeviceptr, size_t> memory;  // that is allocated
  size_t most_memory = 0, largest = 0;
  size_t device_memory = size_t{64} << 30;
  int l2_bytes = 64 << 20;
  int cc_minor = 0;  // of compute capability 8
  std::vector<std::string> functions;
  size_t filled = 0;  // bytes, behind the latest launch
  size_t timed = 0;   // runs of the kernel at the end of `launches`
  size_t in_run = 0;
  bool emulated = false;

  void add(const Launched& launch) {
    const bool again = !launches.empty() && launches.back().kernel == launch.kernel &&
                       launches.back().arguments == launch.arguments && timed > 0;
    if (!again && in_run == 0) {
      launches.push_back(launch);
      in_a_row.push_back(0);
      runs.push_back(0);
      timed = 0;
    }
    EXPECT_EQ(launch.arguments, launches.back().arguments);
    if (launch.kernel == "do_nothing" && in_run == 0 && !emulated) {
      EXPECT_EQ(filled, std::min(size_t{1} << 33, device_memory / 8) / 64 * 64)
          << "the host enqueues all launches meanwhile";
    }
    filled = 0;
    in_a_row.back() = ++in_run;
  }
  float elapsed() {
    in_run = 0;
    runs.back() = ++timed;
    return milliseconds_of_runs[(timed - 1) % std::size(milliseconds_of_runs)];
  }
};
Recorder* recorder = nullptr;

int attribute_value(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 8;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return recorder->cc_minor;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return sms;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1'000'000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 2'000'000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return recorder->l2_bytes;
    default:
      return 0;
  }
}

// NOLINTNEXTLINE(readability-function-size): the signature of cuLaunchKernel
CUresult record_launch(CUfunction function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned,
                       CUstream, void** parameters, void**) {
  Launched launch{recorder->functions.at(reinterpret_cast<size_t>(function) - 1), gx, bx, {}};
  for (const size_t bytes : parameters_of.at(launch.kernel)) {
    launch.arguments.push_back(0);
    std::memcpy(&launch.arguments.back(), parameters[launch.arguments.size() - 1], bytes);
  }
  recorder->add(launch);
  return CUDA_SUCCESS;
}

void add_entries(device::DriverTable& table) {
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute_value(attribute);
    return CUDA_SUCCESS;
  };
  table.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    *bytes = recorder->device_memory;
    return CUDA_SUCCESS;
  };
  table.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
    *address = (recorder->memory.empty() ? 1 : recorder->memory.rbegin()->first + 1);
    recorder->memory[*address] = bytes;
    size_t now = 0;
    for (const auto& [at, size] : recorder->memory) now += size;
    recorder->most_memory = std::max(recorder->most_memory, now);
    recorder->largest = std::max(recorder->largest, bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemFree_v2 = [](CUdeviceptr address) {
    recorder->memory.erase(address);
    return CUDA_SUCCESS;
  };
  table.cuMemsetD32Async = [](CUdeviceptr address, unsigned value, size_t words, CUstream) {
    EXPECT_EQ(value, 0U);
    EXPECT_EQ(4 * words, recorder->memory.at(address)) << "all of it is written before it is read";
    recorder->filled = 4 * words;
    return CUDA_SUCCESS;
  };
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
    *module = reinterpret_cast<CUmodule>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    recorder->functions.emplace_back(name);
    *function = reinterpret_cast<CUfunction>(recorder->functions.size());
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = record_launch;
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuStreamDestroy_v2 = [](CUstream) { return CUDA_SUCCESS; };
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(uint64_t{1});
    return CUDA_SUCCESS;
  };
  table.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  table.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = recorder->elapsed();
    return CUDA_SUCCESS;
  };
}

class CalibrationCounts : public testing::Test {
 protected:
  CalibrationCounts() {
    recorder = &recorded_;
    add_entries(fake_.table);
  }
  ~CalibrationCounts() override { recorder = nullptr; }

  Findings measured(bool emulated, std::optional<std::string> nvrtc_library = Environment::read().nvrtc) {
    fake_.version = 99000;
    recorded_.emulated = emulated;
    const auto driver = device::Driver::from_table(fake_.table, "the fake driver", emulated);
    const auto nvrtc = device::Nvrtc::open({std::move(nvrtc_library)});
    return calibrate(device::ContextHandle::acquire(device::Device(driver, 0)), *nvrtc);
  }
  std::vector<Launched> launches_of(const std::string& kernel) const {
    std::vector<Launched> found;
    std::copy_if(recorded_.launches.begin(), recorded_.launches.end(), std::back_inserter(found),
                 [&](const Launched& launch) { return launch.kernel == kernel; });
    return found;
  }

  // Bytes and operations of the kernels, as kernels_test.cpp has them, by what they took.
  void expect_rates(const Findings& findings, double seconds) const {
    const Launched copy = launches_of("copy_memory").at(0), fma = launches_of("multiply_add").at(0);
    const Launched shared = launches_of("read_shared").at(0);
    EXPECT_DOUBLE_EQ(findings.copy_bytes_per_second, 2.0 * 16 * static_cast<double>(copy.arguments[2]) / seconds);
    EXPECT_DOUBLE_EQ(findings.fma_flops_per_second,
                     2.0 * 16 * 8 * static_cast<double>(fma.arguments[3] * all_threads) / seconds);
    EXPECT_DOUBLE_EQ(findings.shared_bytes_per_second,
                     8.0 * 16 * static_cast<double>(shared.arguments[1] * all_threads) / seconds);
    EXPECT_DOUBLE_EQ(findings.launch_seconds, seconds / 200);
    expect_tensor_rates(findings, seconds);
    const std::vector<Launched> reads = launches_of("read_memory");
    ASSERT_EQ(reads.size(), findings.reads.size());
    for (size_t i = 0; i < reads.size(); ++i) {
      EXPECT_EQ(findings.reads[i].bytes, 16 * reads[i].arguments[2]);
      EXPECT_DOUBLE_EQ(findings.reads[i].bytes_per_second,
                       4.0 * 16 * static_cast<double>(reads[i].arguments[4] * all_threads) / seconds);
    }
  }
  // Eight products of a warp and round, for each type of compute capability 8.0.
  void expect_tensor_rates(const Findings& findings, double seconds) const {
    struct Row {
      const char *kernel, *factors, *sums;
      int multiply_adds;
    };
    const Row rows[] = {{"multiply_f16", "f16", "f32", 16 * 8 * 16},
                        {"multiply_f16_in_f16", "f16", "f16", 16 * 8 * 16},
                        {"multiply_tf32", "tf32", "f32", 16 * 8 * 8},
                        {"multiply_int8", "int8", "i32", 16 * 8 * 32}};
    if (findings.tensor.empty()) return;
    ASSERT_EQ(findings.tensor.size(), std::size(rows));
    for (size_t i = 0; i < std::size(rows); ++i) {
      const Launched launch = launches_of(rows[i].kernel).at(0);
      EXPECT_EQ(findings.tensor[i].factors, rows[i].factors);
      EXPECT_EQ(findings.tensor[i].sums, rows[i].sums);
      EXPECT_EQ(launch.arguments[1], 1024);
      const auto products = static_cast<double>(8 * launch.arguments[1] * all_threads / 32);
      EXPECT_DOUBLE_EQ(findings.tensor[i].operations_per_second, 2 * products * rows[i].multiply_adds / seconds);
    }
  }
  // Shares of L2 that are read, and how often all threads together go through each.
  void expect_footprints(double laps_within, double laps_beyond) const {
    const double shares[] = {0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4};
    const std::vector<Launched> reads = launches_of("read_memory");
    ASSERT_EQ(reads.size(), std::size(shares));
    for (size_t i = 0; i < reads.size(); ++i) {
      const int64_t count = reads[i].arguments[2], span = reads[i].arguments[3], rounds = reads[i].arguments[4];
      EXPECT_EQ(count % span, 0) << shares[i];
      EXPECT_EQ(span % 256, 0) << shares[i];
      EXPECT_LE(span, all_threads) << shares[i];
      EXPECT_GE(span, all_threads / 2) << "most threads have an element of their own";
      const double wanted = shares[i] * recorded_.l2_bytes;
      EXPECT_LE(static_cast<double>(16 * count), wanted) << shares[i];
      EXPECT_GE(static_cast<double>(16 * count), 0.95 * wanted) << shares[i];
      const double laps = 4.0 * static_cast<double>(rounds * all_threads) / static_cast<double>(count);
      EXPECT_GE(laps, shares[i] > 1 ? laps_beyond : laps_within) << shares[i];
    }
  }

  device::FakeDriver fake_;
  Recorder recorded_;
};

TEST_F(CalibrationCounts, AreTheWorkOfTheKernelsByTheMedianOfNineTimes) {
  const Findings findings = measured(false);
  expect_rates(findings, 5e-3);
  expect_footprints(3, 3);
  for (size_t i = 0; i < recorded_.launches.size(); ++i) {
    const Launched& launch = recorded_.launches[i];
    const bool is_empty = launch.kernel == "do_nothing";
    EXPECT_EQ(launch.blocks, is_empty ? 1U : 8U * sms) << launch.kernel;
    EXPECT_EQ(launch.threads, 256U) << launch.kernel;
    EXPECT_EQ(recorded_.in_a_row[i], is_empty ? 200U : 1U) << launch.kernel;
    EXPECT_EQ(recorded_.runs[i], 10U) << launch.kernel;
  }
  EXPECT_DOUBLE_EQ(findings.l2_bytes_per_second, findings.reads[1].bytes_per_second);
  EXPECT_EQ(launches_of("copy_memory").at(0).arguments[2], (1 << 30) / 16) << "1 GiB to another";
  EXPECT_EQ(launches_of("multiply_add").at(0).arguments[3], 1024);
  EXPECT_EQ(launches_of("read_shared").at(0).arguments[1], 1024);
  EXPECT_GE(launches_of("read_memory").at(0).arguments[4], 256);
}

// A device of 5 SMs at 1 GHz, with 64 lanes each and a bus of 128 bytes at twice 2 GHz.
TEST_F(CalibrationCounts, AreSharesOfWhatTheDeviceCouldDo) {
  const Findings findings = measured(false);
  EXPECT_DOUBLE_EQ(findings.calibration.copy_efficiency, findings.copy_bytes_per_second / 512e9);
  EXPECT_DOUBLE_EQ(findings.calibration.l2_bytes_per_clock, findings.l2_bytes_per_second / 5e9);
  EXPECT_DOUBLE_EQ(findings.calibration.fma_efficiency, findings.fma_flops_per_second / (2 * 64 * 5e9));
  EXPECT_DOUBLE_EQ(findings.calibration.shared_efficiency, findings.shared_bytes_per_second / (128 * 5e9));
  EXPECT_DOUBLE_EQ(findings.calibration.launch_seconds, findings.launch_seconds);
  ASSERT_EQ(findings.tensor.size(), 4U);
  const auto clocks = [&](size_t i) { return findings.tensor[i].operations_per_second / (2 * 5e9); };
  EXPECT_DOUBLE_EQ(findings.calibration.f16_efficiency, clocks(0) / 1024) << "with sums in f32";
  EXPECT_DOUBLE_EQ(findings.calibration.tf32_efficiency, clocks(2) / 512);
  EXPECT_DOUBLE_EQ(findings.calibration.int8_efficiency, clocks(3) / 2048);
  EXPECT_EQ(findings.calibration.fp8_efficiency, 0) << "8.0 has none";
}

TEST_F(CalibrationCounts, HaveTheRateOfFp8WhereTheCardHasSuchProducts) {
  recorded_.cc_minor = 9;
  const Findings findings = measured(false);
  ASSERT_EQ(launches_of("multiply_fp8").size(), 1U);
  ASSERT_EQ(findings.tensor.size(), 5U);
  const double ratio = findings.tensor[4].operations_per_second / findings.tensor[3].operations_per_second;
  EXPECT_DOUBLE_EQ(ratio, 1) << "as many products as those of integers";
  EXPECT_GT(findings.calibration.fp8_efficiency, 0);
  EXPECT_GT(findings.calibration.f16_efficiency, 0);
}

// NVRTC knows the instruction for fp8 from 12.4 on.
TEST_F(CalibrationCounts, LackTheRateOfFp8AloneWhereNvrtcIsOlder) {
  recorded_.cc_minor = 9;
  ::setenv("FAKE_NVRTC_ARCHS", "89", 1);
  ::setenv("FAKE_NVRTC_FAILS", "never", 1);
  for (const auto& [version, rates] : {std::pair("12.3", 4U), std::pair("12.4", 5U)}) {
    ::setenv("FAKE_NVRTC_VERSION", version, 1);
    recorded_.launches.clear();
    EXPECT_EQ(measured(false, KILN_FAKE_NVRTC).tensor.size(), rates) << version;
    EXPECT_EQ(launches_of("multiply_fp8").size(), rates - 4) << version;
  }
  ::unsetenv("FAKE_NVRTC_FAILS");
}

TEST_F(CalibrationCounts, AreFewerWhereTheEmulatedDeviceHasToRunThem) {
  const Findings findings = measured(true);
  EXPECT_TRUE(findings.tensor.empty()) << "it tells no time of them";
  expect_rates(findings, 0.1);  // of one run
  expect_footprints(3, 1);
  EXPECT_THAT(recorded_.runs, Each(1));
  EXPECT_EQ(launches_of("copy_memory").at(0).arguments[2], (1 << 30) / 32 / 16);
  EXPECT_EQ(launches_of("multiply_add").at(0).arguments[3], 32);
  EXPECT_EQ(launches_of("read_shared").at(0).arguments[1], 32);
  const std::vector<Launched> reads = launches_of("read_memory");
  const double laps = 4.0 * static_cast<double>(reads.back().arguments[4] * all_threads) /
                      static_cast<double>(reads.back().arguments[2]);
  EXPECT_LT(laps, 1.1) << "what is larger than L2 misses there the first time, too";
}

TEST_F(CalibrationCounts, TakeAQuarterOfTheMemoryAtMost) {
  recorded_.device_memory = (size_t{512} << 20) + 1000;
  (void)measured(false);
  EXPECT_LE(recorded_.largest, recorded_.device_memory / 8);
  EXPECT_GE(recorded_.largest, size_t{64} << 20);
  EXPECT_LE(recorded_.most_memory, recorded_.device_memory / 4);
  EXPECT_THAT(recorded_.memory, testing::IsEmpty());
  EXPECT_EQ(launches_of("copy_memory").at(0).arguments[2] % 4, 0) << "each thread has four loads in flight";
}

}  // namespace
}  // namespace kiln::calibration::counts_test
