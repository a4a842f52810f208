// The modelled devices: occupancy and time.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "driver/settings.h"
#include "kiln/timing/card.h"
#include "model/device_table.h"
#include "model/occupancy.h"
#include "model/timing.h"

namespace kiln::emulator::driver_model_test {
namespace {

const DeviceModel& h200() {
  return *find_device_model("h200");
}
const DeviceModel& t4() {
  return *find_device_model("t4");
}

Occupancy on(const DeviceModel& device, uint32_t threads, uint32_t registers = 0, uint64_t shared = 0) {
  return occupancy(device.limits, {.threads = threads, .registers_per_thread = registers, .shared_bytes = shared});
}

TEST(Occupancy, IsLimitedByBlocksOrWarps) {
  EXPECT_EQ(on(h200(), 32).blocks_per_multiprocessor, 32);
  EXPECT_EQ(on(h200(), 32).limit, OccupancyLimit::blocks);
  EXPECT_EQ(on(h200(), 1024).blocks_per_multiprocessor, 2);
  EXPECT_EQ(on(h200(), 1024).limit, OccupancyLimit::warps);
  EXPECT_EQ(on(h200(), 1024).warps_per_multiprocessor, 64);
  EXPECT_EQ(on(h200(), 33).warps_per_multiprocessor, 64) << "warps are whole: 32 blocks of 2";
  EXPECT_EQ(on(t4(), 1024).blocks_per_multiprocessor, 1);
  EXPECT_EQ(on(*find_device_model("a10"), 1024).blocks_per_multiprocessor, 1) << "48 warps hold one of 32";
}

// Values of NVIDIA's occupancy calculator for compute capability 9.0.
TEST(Occupancy, IsLimitedByRegisters) {
  EXPECT_EQ(on(h200(), 256, 32).blocks_per_multiprocessor, 8);
  EXPECT_EQ(on(h200(), 256, 33).blocks_per_multiprocessor, 6) << "40 registers after rounding";
  EXPECT_EQ(on(h200(), 256, 128).blocks_per_multiprocessor, 2);
  EXPECT_EQ(on(h200(), 256, 255).blocks_per_multiprocessor, 1);
  EXPECT_EQ(on(h200(), 128, 168).blocks_per_multiprocessor, 3);
  EXPECT_EQ(on(h200(), 256, 128).limit, OccupancyLimit::registers);
  EXPECT_EQ(on(h200(), 1024, 200).blocks_per_multiprocessor, 1) << "an estimate above 64 would have been spilled";
}

TEST(Occupancy, IsLimitedBySharedMemoryWithItsReserve) {
  EXPECT_EQ(on(h200(), 128, 0, 232448).blocks_per_multiprocessor, 1);
  EXPECT_EQ(on(h200(), 128, 0, 115712).blocks_per_multiprocessor, 2) << "(228 KB / 2) - 1 KB";
  EXPECT_EQ(on(h200(), 128, 0, 115713).blocks_per_multiprocessor, 1);
  EXPECT_EQ(on(h200(), 128, 0, 232449).blocks_per_multiprocessor, 0);
  EXPECT_EQ(on(t4(), 128, 0, 32768).blocks_per_multiprocessor, 2) << "no reserve before 8.0";
  EXPECT_EQ(on(h200(), 128, 0, 115712).limit, OccupancyLimit::shared_memory);
}

// A launch that is easy to vary: every block does the same work.
struct Work {
  uint64_t blocks = 1056;
  uint32_t threads = 256;
  Occupancy occupancy = {4, 32, OccupancyLimit::registers};
  Counters per_block;
  double shared_reads = 1;  // blocks that read the same load sector

  LaunchTime time(const DeviceModel& device = h200()) const {
    Counters all = per_block;
    for (uint64_t* count : {&all.issued, &all.fma_f32, &all.special, &all.integer, &all.global_load, &all.shared_load,
                            &all.shared_wavefronts, &all.global_sectors, &all.block_sectors, &all.unique_load_sectors,
                            &all.unique_store_sectors, &all.barriers}) {
      *count *= blocks;
    }
    all.unique_load_sectors = static_cast<uint64_t>(static_cast<double>(all.unique_load_sectors) / shared_reads);
    return model_launch(device, {blocks, threads, occupancy}, all);
  }
};

Work arithmetic() {
  Work work;
  work.per_block.issued = 100000;
  work.per_block.fma_f32 = 90000;
  return work;
}

Work streaming() {
  Work work;
  work.per_block.issued = 4000;
  work.per_block.global_load = 800;
  work.per_block.global_sectors = work.per_block.block_sectors = 400 * 8;
  work.per_block.unique_load_sectors = 400 * 8;
  return work;
}

TEST(ModelledTime, IsTheSameToTheBit) {
  const double once = streaming().time().seconds;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(streaming().time().seconds, once);
}

TEST(ModelledTime, OfAnEmptyKernelIsAboutTheLaunchOverhead) {
  Work work;
  work.blocks = 1;
  const LaunchTime time = work.time();
  EXPECT_GE(time.seconds, h200().rates.launch_seconds);
  EXPECT_LE(time.seconds, 1.2 * h200().rates.launch_seconds);
}

TEST(ModelledTime, OfArithmeticIsNearThePeakOfTheDevice) {
  const Work work = arithmetic();
  const LaunchTime time = work.time();
  const double peak = 132 * 128 / 32 * 1.98e9;  // warp instructions a second
  const double ideal = static_cast<double>(work.blocks * work.per_block.issued) / peak;
  EXPECT_EQ(time.bound, "issue");
  EXPECT_GE(time.seconds, ideal);
  EXPECT_LE(time.seconds, 1.2 * ideal);
}

TEST(ModelledTime, OfStreamingIsNearTheCopyBandwidthOfTheDevice) {
  Work work = streaming();
  work.blocks = 100000;
  const LaunchTime time = work.time();
  const double ideal = static_cast<double>(work.blocks) * 3200 * 32 / 4.3e12;
  EXPECT_EQ(time.bound, "dram");
  EXPECT_GE(time.seconds, ideal);
  EXPECT_LE(time.seconds, 1.2 * ideal);
}

TEST(ModelledTime, GrowsWithBankConflicts) {
  Work work = arithmetic();
  work.per_block.shared_load = 5000;
  double last = 0;
  for (const uint64_t conflicts : {1, 2, 4, 8, 16, 32}) {
    work.per_block.shared_wavefronts = 5000 * conflicts;
    const double seconds = work.time().seconds;
    EXPECT_GT(seconds, last) << conflicts;
    last = seconds;
  }
  EXPECT_EQ(work.time().bound, "l1");
}

TEST(ModelledTime, GrowsWithUncoalescedAccess) {
  Work coalesced = streaming(), scattered = streaming();
  scattered.per_block.global_sectors = scattered.per_block.block_sectors = 3200 * 8;
  scattered.per_block.unique_load_sectors = 3200 * 8;
  EXPECT_GT(scattered.time().seconds, 2 * coalesced.time().seconds);
}

TEST(ModelledTime, GrowsWithSectorsThatOnlyL1CanServe) {
  Work once = streaming(), again = streaming();
  again.per_block.global_sectors *= 40;
  EXPECT_GT(again.time().seconds, once.time().seconds);
  Work missing = again;
  missing.per_block.block_sectors = again.per_block.global_sectors;
  EXPECT_GT(missing.time().l2, again.time().l2);
}

TEST(ModelledTime, FetchesWhatBlocksShareOnlyOnceWhileL2HoldsIt) {
  Work work = streaming();
  work.shared_reads = 64;
  const LaunchTime small = work.time();  // 1056 * 3200 * 32 / 64 bytes: 1.7 MB
  EXPECT_NEAR(small.dram * 4.3e12, 1056 * 3200 * 32 / 64, 1000);
  work.blocks *= 1000;
  const LaunchTime large = work.time();
  EXPECT_GT(large.dram, 1000 * small.dram * 1.01) << "1.7 GB does not fit";
  EXPECT_LT(large.dram, 64 * 1000 * small.dram);
}

TEST(ModelledTime, DoesNotGrowWithOccupancy) {
  for (Work work : {arithmetic(), streaming()}) {
    double last = INFINITY;
    for (const int blocks : {1, 2, 3, 4, 8}) {
      work.occupancy = {blocks, 8 * blocks, OccupancyLimit::registers};
      const double seconds = work.time().seconds;
      EXPECT_LE(seconds, last);
      last = seconds;
    }
  }
}

TEST(ModelledTime, SuffersWhenTooFewWarpsCoverTheLatency) {
  Work few = streaming(), many = streaming();
  few.blocks = many.blocks = 20000;
  few.occupancy = {1, 8, OccupancyLimit::shared_memory};
  many.occupancy = {8, 64, OccupancyLimit::warps};
  EXPECT_EQ(few.time().bound, "latency");
  EXPECT_GT(few.time().seconds, 1.5 * many.time().seconds);
}

TEST(ModelledTime, StepsUpWhenOneBlockTooManyStartsANewWave) {
  Work fits = arithmetic(), spills = arithmetic();
  fits.blocks = 132;
  spills.blocks = 133;
  EXPECT_GT(spills.time().seconds, 1.8 * fits.time().seconds);
  Work part = arithmetic();
  part.blocks = 66;
  EXPECT_GE(part.time().seconds, 0.95 * fits.time().seconds) << "half of the SMs idle";
}

TEST(ModelledTime, LetsSplitKHelpATinyGridWithAHugeLoop) {
  Work whole;
  whole.blocks = 4;
  whole.per_block.issued = 4000000;
  whole.per_block.fma_f32 = 3000000;
  whole.per_block.global_load = 100000;
  whole.per_block.global_sectors = whole.per_block.block_sectors = 1600000;
  whole.per_block.unique_load_sectors = 1600000;
  Work split = whole;
  const uint64_t parts = 32;
  split.blocks *= parts;
  for (uint64_t* count :
       {&split.per_block.issued, &split.per_block.fma_f32, &split.per_block.global_load,
        &split.per_block.global_sectors, &split.per_block.block_sectors, &split.per_block.unique_load_sectors}) {
    *count /= parts;
  }
  EXPECT_LT(split.time().seconds, whole.time().seconds / 8);
}

TEST(ModelledTime, IsLongerOnASmallerDevice) {
  EXPECT_GT(arithmetic().time(t4()).seconds, 3 * arithmetic().time().seconds);
  Work work = streaming();
  work.blocks = 100000;
  EXPECT_GT(work.time(t4()).seconds, 10 * work.time().seconds);
}

TEST(ModelledTime, IsPlausibleOnEveryDevice) {
  for (const DeviceModel& device : device_models()) {
    const double bandwidth = 2.0 * device.limits.memory_clock_khz * 1e3 * device.limits.bus_bits / 8;
    EXPECT_GT(device.rates.dram_bytes_per_second, 0.7 * bandwidth) << device.key;
    EXPECT_LT(device.rates.dram_bytes_per_second, 0.95 * bandwidth) << device.key;
    const double l2 = device.rates.l2_bytes_per_clock * device.limits.multiprocessors * device.limits.clock_khz * 1e3;
    EXPECT_GT(l2, device.rates.dram_bytes_per_second) << device.key;
    EXPECT_LT(device.rates.shared_latency, device.rates.l2_latency) << device.key;
    EXPECT_LT(device.rates.l2_latency, device.rates.dram_latency) << device.key;
    EXPECT_TRUE(std::isfinite(streaming().time(device).seconds)) << device.key;
  }
}

// Two tables of the same devices, each from its own sources.
TEST(DeviceTable, AgreesWithTheCardsOfTheTimeModel) {
  for (const DeviceModel& device : device_models()) {
    SCOPED_TRACE(device.key);
    const timing::Card card = timing::find_card(device.key);
    const DeviceLimits& limits = device.limits;
    EXPECT_EQ(limits.major * 10 + limits.minor, static_cast<int>(card.arch));
    EXPECT_EQ(limits.multiprocessors, static_cast<int>(card.sms));
    EXPECT_EQ(limits.clock_khz, static_cast<int>(card.clock_mhz * 1000));
    EXPECT_EQ(limits.l2_bytes, card.l2_bytes);
    EXPECT_EQ(limits.threads_per_multiprocessor, static_cast<int>(card.warps * 32));
    EXPECT_EQ(limits.blocks_per_multiprocessor, static_cast<int>(card.blocks));
    EXPECT_EQ(limits.shared_per_multiprocessor, static_cast<int>(card.shared_bytes));
    EXPECT_EQ(limits.shared_reserved_per_block, static_cast<int>(card.shared_reserve));
    EXPECT_EQ(limits.shared_per_block_optin, limits.shared_per_multiprocessor - limits.shared_reserved_per_block);
    if (device.key != "a100") {  // the card is that with 40 GB, whose memory is slower
      const double gigabytes = 2.0 * limits.memory_clock_khz * limits.bus_bits / 8 / 1e6;
      EXPECT_NEAR(gigabytes, card.dram_peak_gbs, 1);
    }
    const double peak = 2e3 * limits.memory_clock_khz * limits.bus_bits / 8;
    EXPECT_NEAR(device.rates.dram_bytes_per_second / peak, static_cast<double>(card.dram_gbs) / card.dram_peak_gbs,
                0.1);
    // Four schedulers have 32 lanes each, if a warp's instruction takes a cycle.
    const DeviceRates& rates = device.rates;
    EXPECT_EQ(rates.fp32_lanes, static_cast<int>(128 / card.fma_cycles));
    EXPECT_EQ(rates.fp16_lanes, static_cast<int>(128 / card.half_cycles));
    EXPECT_EQ(rates.fp64_lanes, static_cast<int>(128 / card.double_cycles));
    EXPECT_EQ(rates.integer_lanes, static_cast<int>(128 / card.alu_cycles));
    EXPECT_EQ(rates.special_lanes, static_cast<int>(128 / card.special_cycles));
    EXPECT_EQ(rates.conversion_lanes, static_cast<int>(128 / card.convert_cycles));
  }
}

Settings settings_of(const std::map<std::string, std::string>& variables) {
  return Settings::read([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal_of(const std::string& name, const std::string& value) {
  try {
    (void)settings_of({{name, value}});
  } catch (const SettingsError& error) {
    return error.what();
  }
  return "none";
}

TEST(Settings, AreThoseOfTheirVariables) {
  const Settings standard = settings_of({});
  ASSERT_EQ(standard.devices.size(), 1U);
  EXPECT_EQ(standard.devices[0]->key, "h200");
  EXPECT_EQ(standard.check, CheckLevel::bounds);
  EXPECT_EQ(standard.clock, ClockChoice::automatic);
  EXPECT_EQ(standard.units, &unit_table());
  EXPECT_GE(standard.threads, 1U);
  EXPECT_EQ(standard.instruction_limit, 20'000'000'000U);
  EXPECT_EQ(standard.counted_blocks, 64U);
  EXPECT_EQ(standard.card, "");
  EXPECT_EQ(standard.tensor, TensorArithmetic::chain);

  const Settings two = settings_of({{"KILN_EMULATOR_DEVICE", "t4,a100"}});
  ASSERT_EQ(two.devices.size(), 2U);
  EXPECT_EQ(two.devices[0]->key, "t4");
  EXPECT_EQ(two.devices[1]->key, "a100");
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CHECK", "off"}}).check, CheckLevel::off);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CHECK", "bounds"}}).check, CheckLevel::bounds);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CHECK", "full"}}).check, CheckLevel::full);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CLOCK", "machine"}}).clock, ClockChoice::machine);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CLOCK", "ptx"}}).clock, ClockChoice::ptx);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_CARD", "mine.card"}}).card, "mine.card");
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_TENSOR", "chain"}}).tensor, TensorArithmetic::chain);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_TENSOR", "hardware"}}).tensor, TensorArithmetic::hardware);
  for (const UnitSet& set : unit_sets()) {
    if (set.table == nullptr) {
      EXPECT_NE(refusal_of("KILN_EMULATOR_UNITS", set.name).find(set.missing), std::string::npos);
    } else {
      EXPECT_EQ(settings_of({{"KILN_EMULATOR_UNITS", set.name}}).units, set.table);
    }
  }
}

TEST(Settings, NumbersHaveARange) {
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_THREADS", "1"}}).threads, 1U);
  EXPECT_EQ(settings_of({{"KILN_EMULATOR_THREADS", "1024"}}).threads, 1024U);
  EXPECT_NE(refusal_of("KILN_EMULATOR_THREADS", "1025").find("whole number from 1 to 1024"), std::string::npos);
  for (const char* name : {"KILN_EMULATOR_INSTRUCTION_LIMIT", "KILN_EMULATOR_COUNTED_BLOCKS"}) {
    const auto value = [&](const std::string& text) {
      const Settings settings = settings_of({{name, text}});
      return name == std::string("KILN_EMULATOR_COUNTED_BLOCKS") ? settings.counted_blocks : settings.instruction_limit;
    };
    EXPECT_EQ(value("0"), 0U);
    EXPECT_EQ(value("17"), 17U);
    EXPECT_EQ(value("4611686018427387904"), uint64_t{1} << 62);
    for (const char* wrong : {"4611686018427387905", "", "1 ", "-1", "0x10", "99999999999999999999"}) {
      EXPECT_NE(refusal_of(name, wrong).find(std::string(name) + "=" + wrong + " is not a whole number"),
                std::string::npos)
          << wrong;
    }
  }
}

// By its name, which programs see, each device gets that card.
TEST(DeviceTable, NamesFindTheirCards) {
  for (const DeviceModel& device : device_models()) {
    const auto arch = static_cast<uint32_t>(device.limits.major * 10 + device.limits.minor);
    EXPECT_EQ(timing::nearest_card({.name = std::string(device.name), .arch = arch}), device.key);
  }
}

}  // namespace
}  // namespace kiln::emulator::driver_model_test
