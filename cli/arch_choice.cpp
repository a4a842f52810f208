#include "arch_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::cli {
namespace {

// As 10 * major + minor.
int number_of(const Arch& arch) {
  return 10 * arch.major + arch.minor;
}

bool has_kernels(int number) {
  const std::vector<Arch>& all = Arch::all();
  return std::any_of(all.begin(), all.end(),
                     [&](const Arch& arch) { return arch.major == number / 10 && arch.minor <= number % 10; });
}

// Architectures that can be asked for: with an NVRTC, also newer steps of a major version than Kiln knows by name.
std::vector<int> known_numbers(const device::Nvrtc* nvrtc) {
  std::vector<int> numbers;
  if (nvrtc == nullptr) {
    for (const Arch& arch : Arch::all()) numbers.push_back(number_of(arch));
  } else {
    std::copy_if(nvrtc->supported_archs().begin(), nvrtc->supported_archs().end(), std::back_inserter(numbers),
                 has_kernels);
  }
  return numbers;
}

}  // namespace

Arch parse_arch(const std::string& text, const device::Nvrtc* nvrtc) {
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
  const std::vector<int> known = known_numbers(nvrtc);
  if (std::find(known.begin(), known.end(), number) == known.end()) {
    const std::string whose =
        nvrtc == nullptr ? "Kiln" : fmt::format("NVRTC {}.{}", nvrtc->version().major, nvrtc->version().minor);
    throw Error(ErrorCode::invalid_argument, fmt::format("--arch {}: there are no kernels for it", text),
                fmt::format("with {} there are sm_{}", whose, fmt::join(known, ", sm_")));
  }
  return Arch::of(number / 10, number % 10);
}

}  // namespace kiln::cli
