#include "calibrate.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "commands.h"
#include "database.h"
#include "json.h"
#include "kiln/base/output_file.h"
#include "kiln/cache/database.h"
#include "kiln/cache/record.h"
#include "kiln/calibration/calibrate.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/arch.h"
#include "kiln/runtime/settings.h"
#include "measured_card.h"
#include "modelled_times.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

std::string byte_rate_text(double bytes_per_second) {
  return fmt::format("{:.3g} TB/s", bytes_per_second / 1e12);
}

Json tensor_json(const calibration::Findings& findings) {
  Json rates = Json::array();
  for (const calibration::TensorRate& rate : findings.tensor) {
    rates.push_back({{"factors", std::string(rate.factors)},
                     {"sums", std::string(rate.sums)},
                     {"operations_per_second", rate.operations_per_second}});
  }
  return rates;
}

Json json_of(const device::DeviceInfo& info, const calibration::Findings& findings) {
  Json reads = Json::array();
  for (const calibration::FootprintRate& read : findings.reads) {
    reads.push_back({{"bytes", read.bytes}, {"bytes_per_second", read.bytes_per_second}});
  }
  return {{"device", info.id()},
          {"time", info.emulated ? "modelled" : "measured"},
          {"modelled_by", modelled_json(info.name)},
          {"copy_bytes_per_second", findings.copy_bytes_per_second},
          {"l2_bytes", info.l2_bytes},
          {"l2_bytes_per_second", findings.l2_bytes_per_second},
          {"reads", reads},
          {"fma_flops_per_second", findings.fma_flops_per_second},
          {"shared_bytes_per_second", findings.shared_bytes_per_second},
          {"tensor", tensor_json(findings)},
          {"launch_seconds", findings.launch_seconds},
          {"calibration", findings.calibration.print()}};
}

std::string print_text(const device::DeviceInfo& info, const calibration::Findings& findings, const Output& output) {
  const DeviceFigures nominal = execution::figures_of(info);
  const Calibration& reached = findings.calibration;
  Table table({"figure", info.emulated ? ">modelled" : ">measured", "which is"});
  table.add(
      {"device memory, copy", byte_rate_text(findings.copy_bytes_per_second),
       fmt::format("{} of {}", percent_text(reached.copy_efficiency), byte_rate_text(nominal.dram_bytes_per_second))});
  table.add({"L2, read", byte_rate_text(findings.l2_bytes_per_second),
             fmt::format("{:.1f} bytes a clock and SM", reached.l2_bytes_per_clock)});
  table.add(
      {"f32 multiply-add", fmt::format("{:.1f} TFLOP/s", findings.fma_flops_per_second / 1e12),
       fmt::format("{} of the lanes at {:.0f} MHz", percent_text(reached.fma_efficiency), nominal.clock_hz / 1e6)});
  table.add({"shared memory, read", byte_rate_text(findings.shared_bytes_per_second),
             fmt::format("{} of 128 bytes a clock and SM", percent_text(reached.shared_efficiency))});
  const Arch arch = Arch::of(info.cc_major, info.cc_minor);
  for (const calibration::TensorRate& rate : findings.tensor) {
    table.add({fmt::format("tensor cores, {} in {}", rate.factors, rate.sums),
               fmt::format("{:.1f} {}", rate.operations_per_second / 1e12,
                           rate.math == MathClass::tensor_int8 ? "TOP/s" : "TFLOP/s"),
               fmt::format("{} of {} a clock and SM", percent_text(rate.share), arch.products_per_clock(rate.math))});
  }
  table.add({"launch", time_text(findings.launch_seconds), "from one empty kernel to the next"});
  Table reads({">buffer", ">of L2", ">read at"});
  for (const calibration::FootprintRate& read : findings.reads) {
    reads.add({fmt::format("{:.1f} MiB", static_cast<double>(read.bytes) / (1 << 20)),
               percent_text(static_cast<double>(read.bytes) / info.l2_bytes), byte_rate_text(read.bytes_per_second)});
  }
  const std::string clock = info.emulated ? fmt::format("times are {}\n", modelled_text(info.name)) : "";
  return fmt::format("{}\n{}\n{}\n{}", info.id(), clock, output.print(table), output.print(reads));
}

// Nothing where no folder is known and where the user wants none.
std::optional<std::string> calibrated_database(const CalibrateOptions& options, const Environment& environment) {
  return cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), environment);
}

int keep(const std::string& path, const device::DeviceInfo& info, const Calibration& calibration) {
  OpenedDatabase opened = open_announced(path, cache::OpenMode::read_write);
  if (opened.trouble) fmt::print(stderr, "kiln: {}\n", opened.trouble->text());
  const cache::Kept kept = opened.database.put_calibration({info.id(), calibration.print(), cache::utc_now_ms()});
  return kept == cache::Kept::durably ? success : io;
}

// Whatever cannot be written is refused before anything is measured.
std::optional<OutputFile> card_file(const CalibrateOptions& options, const device::DeviceInfo& info) {
  if (options.card.empty()) return std::nullopt;
  base_of_card(info);
  return std::optional<OutputFile>(std::in_place, "the card", options.card);
}

}  // namespace

int calibrate_device(const CalibrateOptions& options) {
  const Environment environment = options.device.environment();
  const auto context = device::ContextHandle::acquire(
      device::Device(device::Driver::open({environment.driver}), options.device.ordinal()));
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const device::DeviceInfo& info = context->device().info();
  std::optional<OutputFile> file = card_file(options, info);
  const calibration::Findings findings = calibration::calibrate(context, *nvrtc);
  std::optional<timing::UserCard> card;
  if (file) {
    const std::string today = cache::format_utc(cache::utc_now_ms()).substr(0, 10);
    card = measured_card(info, findings, device::cuda_version_text(context->driver().version()), today);
    file->write(card->text);
    file->publish();
  }
  if (options.output.json) {
    Json json = json_of(info, findings);
    if (card) json.set("card", card_json(*card, options.card));
    print_json(json);
  } else {
    fmt::print("{}", print_text(info, findings, options.output));
    if (card) {
      fmt::print("\n{}written to {}: KILN_EMULATOR_CARD={} on an emulated {} takes it\n",
                 card_text(*card, options.output), options.card, options.card, card->base);
    }
  }

  const std::optional<std::string> path = calibrated_database(options, environment);
  if (!path) {
    fmt::print(stderr, "kiln: there is no tuning database: the figures are not kept (give --db FILE)\n");
    return success;
  }
  const int exit_code = keep(*path, info, findings.calibration);
  if (exit_code == success && !options.output.json) fmt::print("\nkept in {}: predictions are drawn from it\n", *path);
  return exit_code;
}

}  // namespace kiln::cli
