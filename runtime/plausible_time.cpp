#include "plausible_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kiln/generator/roofline.h"

namespace kiln {
namespace {

// The number behind ` name=` in a DeviceId line (DeviceInfo::id()); nothing if there is none.
std::optional<double> number_in(std::string_view line, std::string_view name) {
  const std::string start = fmt::format(" {}=", name);
  line.remove_prefix(line.rfind('"') + 1);  // the device's name, which comes first, may hold anything
  const size_t at = line.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = line.data() + at + start.size();
  long long value = 0;
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  if (error != std::errc() || end == begin || value <= 0) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<DeviceFigures> figures_in(std::string_view device_id) {
  const auto sms = number_in(device_id, "sms"), clock = number_in(device_id, "clock"),
             memory_clock = number_in(device_id, "memory_clock"), bus = number_in(device_id, "bus");
  if (!sms || !clock || !memory_clock || !bus) return std::nullopt;
  DeviceFigures figures;
  figures.sms = static_cast<int>(*sms);
  figures.clock_hz = *clock * 1e6;
  figures.dram_bytes_per_second = 2 * *memory_clock * 1e6 * *bus / 8;
  return figures;
}

}  // namespace

std::optional<std::string> impossible_time(const Request& request, const Arch& arch, std::string_view device_id,
                                           double seconds) {
  constexpr double largest_l2 = 256.0 * (1 << 20);
  constexpr double faster = 1.25;  // clocks may be raised beyond the nominal ones
  const std::optional<DeviceFigures> figures = figures_in(device_id);
  if (!figures) return std::nullopt;
  const Roofline bound = roofline(request, arch, *figures);
  const double cached = largest_l2 / figures->dram_bytes_per_second;
  const double least = std::max(bound.arithmetic(), bound.traffic() - cached) / faster;
  if (seconds >= least) return std::nullopt;
  return fmt::format("a time of {:.3g} s is impossible: its arithmetic and memory traffic take {:.3g} s at the least",
                     seconds, least);
}

}  // namespace kiln
