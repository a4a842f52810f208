#include "short_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kiln/generator/operation.h"

namespace kiln::cli {

std::string summary(const Request& request) {
  std::string text = operation(request.operation).short_form(request);
  if (request.user_code) text += fmt::format(", user:{:.8}", request.user_code.digest());
  return text;
}

std::string device_text(const device::DeviceInfo& device) {
  return fmt::format("{}, times {}", device.name, device.emulated ? "modelled" : "measured");
}

std::string time_text(double seconds) {
  if (seconds < 1e-7) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string duration_text(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return whole >= 60 ? fmt::format("{}m{:02}s", whole / 60, whole % 60) : fmt::format("{}s", whole);
}

std::string percent_text(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f}%", 100 * share);
}

std::string predictions_text(bool calibrated, const std::string& figures) {
  return fmt::format("{}: {}", calibrated ? "calibrated on this device" : "assumed, this device is not calibrated",
                     figures);
}

std::string rate_text(double rate, std::string_view unit) {
  for (const auto& [prefix, scale] : {std::pair("P", 1e15), {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}}) {
    if (rate >= scale) return fmt::format("{:.3g} {}{}", rate / scale, prefix, unit);
  }
  return fmt::format("{:.3g} {}", rate, unit);
}

std::string count_text(size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string ratio_text(double ratio) {
  return std::isnan(ratio) ? "-" : fmt::format("{:.2f}x", ratio);
}

std::string in_one_line(std::string_view error) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= error.size();) {
    const size_t end = std::min(error.find('\n', begin), error.size());
    lines.push_back(error.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto complaint = std::find_if(lines.begin() + 1, lines.end(), [](std::string_view line) {
    return line.find("): error: ") != std::string_view::npos ||
           line.find("): catastrophic error: ") != std::string_view::npos;
  });
  if (complaint != lines.end()) return std::string(*complaint);
  if (lines.size() > 1 && lines[0].ends_with(':')) return fmt::format("{} {}", lines[0], lines[1]);
  return std::string(lines[0]);
}

}  // namespace kiln::cli
