#include "arch_choice.h"

#include <fmt/format.h>

#include <charconv>

#include "kiln/base/error.h"

namespace kiln::cli {

Arch parse_arch(const std::string& text) {
  constexpr std::string_view prefix = "sm_";
  std::string_view digits = text;
  if (digits.starts_with(prefix)) digits.remove_prefix(prefix.size());
  int number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end || number < 10) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--arch {} is not an architecture", text),
                "write for example sm_90");
  }
  return Arch::of(number / 10, number % 10);
}

}  // namespace kiln::cli
