#include "measured_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "json.h"
#include "kiln/base/error.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/execution/target.h"
#include "kiln/timing/card.h"
#include "table.h"

namespace kiln::cli {
namespace {

uint32_t whole(double value) {
  return static_cast<uint32_t>(std::lround(value));
}

// In the units of cards. An emulated device has its name without the clock.
timing::DeviceFigures figures_of(const device::DeviceInfo& info) {
  const DeviceFigures nominal = execution::figures_of(info);
  const auto clock = cache::machine_clock_of(info.name);
  return {.name = clock ? std::string(clock->card) : info.name,
          .arch = static_cast<uint32_t>(10 * info.cc_major + info.cc_minor),
          .sms = static_cast<uint32_t>(info.sms),
          .clock_mhz = whole(info.clock_khz / 1e3),
          .l2_bytes = static_cast<uint32_t>(info.l2_bytes),
          .dram_peak_gbs = whole(nominal.dram_bytes_per_second / 1e9)};
}

// A card's figures are those of all devices of its compute capability, which emulated ones are known by.
std::string card_of(const timing::DeviceFigures& device) {
  std::string all;
  for (const std::string& name : timing::card_names()) {
    const uint32_t arch = timing::find_card(name).arch;
    all += fmt::format("{}{} ({}.{})", all.empty() ? "" : ", ", name, arch / 10, arch % 10);
    if (arch == device.arch) return timing::nearest_card(device);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("no built-in card has the compute capability of {}, {}.{}: there is nothing to take what "
                          "cannot be measured from",
                          device.name, device.arch / 10, device.arch % 10),
              fmt::format("there is {}", all));
}

// Adds the figures that the driver reports; 0 is not known.
void add_told(const device::DeviceInfo& info, const std::string& source, std::vector<timing::FoundFigure>& found) {
  const timing::DeviceFigures figures = figures_of(info);
  const auto add = [&](const char* name, uint32_t value) {
    if (value != 0) found.push_back({name, value, source});
  };
  add("sms", figures.sms);
  add("clock_mhz", figures.clock_mhz);
  add("warps", static_cast<uint32_t>(info.threads_per_sm / info.warp_size));
  add("blocks", static_cast<uint32_t>(info.blocks_per_sm));
  add("registers", static_cast<uint32_t>(info.registers_per_sm));
  add("shared_bytes", static_cast<uint32_t>(info.shared_per_sm));
  add("l2_bytes", figures.l2_bytes);
  add("dram_peak_gbs", figures.dram_peak_gbs);
}

// Name of the card's figure.
const char* tensor_figure(const calibration::TensorRate& rate) {
  switch (rate.math) {
    case MathClass::tensor_tf32:
      return "tensor_tf32";
    case MathClass::tensor_fp8:
      return "tensor_fp8";
    case MathClass::tensor_int8:
      return "tensor_byte";
    case MathClass::tensor_f16_sums:
      return "tensor_half";
    default:
      return "tensor_float";
  }
}

}  // namespace

std::string base_of_card(const device::DeviceInfo& info) {
  if (info.emulated && !cache::machine_clock_of(info.name)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--card: the times of {} come from PTX alone, and are of no card", info.name),
                "KILN_EMULATOR_CLOCK=machine takes them from machine code; --device cuda:0 measures a GPU");
  }
  return card_of(figures_of(info));
}

timing::UserCard measured_card(const device::DeviceInfo& info, const calibration::Findings& findings,
                               const std::string& driver_version, const std::string& date) {
  const std::string base = base_of_card(info);
  const std::string driver = fmt::format("driver of CUDA {}", driver_version);
  std::vector<timing::FoundFigure> found;
  add_told(info, fmt::format("told by the {}, {}", driver, date), found);
  const timing::Card built_in = timing::find_card(base);
  if (const timing::Card card = timing::card_for(figures_of(info)); card.dram_latency != built_in.dram_latency) {
    found.push_back({"dram_latency", card.dram_latency,
                     fmt::format("behind L2 as long in time as {}'s {} cycles at {} MHz", base, built_in.dram_latency,
                                 built_in.clock_mhz)});
  }
  const auto add = [&](const char* name, double value, const char* what) {
    found.push_back({name, whole(value),
                     fmt::format("{} on {}, {}: {}", info.emulated ? "modelled" : "measured", date, driver, what)});
  };
  add("l2_bytes_per_clock", findings.calibration.l2_bytes_per_clock, "all SMs read a quarter of L2");
  add("dram_gbs", findings.copy_bytes_per_second / 1e9, "a large copy, bytes read plus bytes written");
  add("launch_ns", findings.launch_seconds * 1e9, "from one empty kernel to the next");
  // A card has the rate of the units, and the share of it that mma.sync reaches.
  const double clocks = static_cast<double>(info.sms) * info.clock_khz * 1e3;
  for (const calibration::TensorRate& rate : findings.tensor) {
    const double of_scheduler = rate.operations_per_second / (2 * clocks * 4);
    add(tensor_figure(rate), of_scheduler * 100 / built_in.mma_percent,
        "multiply-adds a clock and scheduler by mma.sync, over the share that it reaches");
  }
  return timing::user_card(base, found,
                           fmt::format("{}, {} by `kiln devices --calibrate` on {}.", info.name,
                                       info.emulated ? "modelled" : "measured", date));
}

std::string card_text(const timing::UserCard& card, const Output& output) {
  Table table({"figure of the card", ">value", ">" + card.base + " has", "source"});
  std::vector<std::string> kept;
  for (const timing::UserCard::Figure& figure : card.figures) {
    if (figure.found)
      table.add({figure.name, figure.value, figure.base_value, figure.source});
    else
      kept.push_back(figure.name);
  }
  return fmt::format("{}kept from {}: {}\n", output.print(table), card.base, fmt::join(kept, ", "));
}

Json card_json(const timing::UserCard& card, const std::string& file) {
  Json figures = Json::array(), kept = Json::array();
  for (const timing::UserCard::Figure& figure : card.figures) {
    if (!figure.found) {
      kept.push_back(figure.name);
      continue;
    }
    figures.push_back({{"name", figure.name},
                       {"value", std::stoul(figure.value)},
                       {"base_value", std::stoul(figure.base_value)},
                       {"source", figure.source}});
  }
  return {{"file", file}, {"base", card.base}, {"figures", figures}, {"kept", kept}};
}

}  // namespace kiln::cli
