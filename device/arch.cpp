#include "kiln/device/arch.h"

#include <fmt/format.h>

#include <charconv>

#include "kiln/base/error.h"

namespace kiln::device {
namespace {

constexpr std::string_view real_prefix = "sm_";
constexpr std::string_view virtual_prefix = "compute_";

std::string arch_name(std::string_view prefix, int cc_major, int cc_minor, ArchFeatures features) {
  const bool suffix = features == ArchFeatures::specific && cc_major >= 9;
  return fmt::format("{}{}{}{}", prefix, cc_major, cc_minor, suffix ? "a" : "");
}

}  // namespace

std::string real_arch(int cc_major, int cc_minor, ArchFeatures features) {
  return arch_name(real_prefix, cc_major, cc_minor, features);
}

std::string virtual_arch(int cc_major, int cc_minor, ArchFeatures features) {
  return arch_name(virtual_prefix, cc_major, cc_minor, features);
}

bool is_real_arch(std::string_view arch) {
  return arch.starts_with(real_prefix);
}

int arch_number(std::string_view arch) {
  std::string_view digits;
  if (arch.starts_with(real_prefix)) digits = arch.substr(real_prefix.size());
  if (arch.starts_with(virtual_prefix)) digits = arch.substr(virtual_prefix.size());
  int number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view suffix(end, static_cast<size_t>(digits.data() + digits.size() - end));
  if (status != std::errc() || number < 10 || !(suffix.empty() || suffix == "a" || suffix == "f")) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not the name of an architecture", arch),
                "expected e.g. sm_90a or compute_90");
  }
  return number;
}

}  // namespace kiln::device
