#include "kiln/generator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kiln {
namespace {

struct Figure {
  std::string_view name;
  double Calibration::*value;
};

constexpr std::array<Figure, 5> figures = {{{"copy_efficiency", &Calibration::copy_efficiency},
                                            {"l2_bytes_per_clock", &Calibration::l2_bytes_per_clock},
                                            {"fma_efficiency", &Calibration::fma_efficiency},
                                            {"shared_efficiency", &Calibration::shared_efficiency},
                                            {"launch_seconds", &Calibration::launch_seconds}}};

}  // namespace

std::string Calibration::print() const {
  std::string text;
  for (const Figure& figure : figures) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", figure.name, this->*figure.value);
  }
  return text;
}

std::optional<Calibration> Calibration::parse(std::string_view text) {
  Calibration result;
  for (size_t i = 0; i < figures.size(); ++i) {
    const std::string_view field = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (field.substr(0, equals) != figures[i].name || equals == std::string_view::npos) return std::nullopt;
    double& value = result.*figures[i].value;
    const auto [stop, error] = std::from_chars(field.data() + equals + 1, field.data() + field.size(), value);
    if (error != std::errc() || stop != field.data() + field.size()) return std::nullopt;
    if (!std::isfinite(value) || value <= 0) return std::nullopt;
  }
  return text.empty() ? std::optional(result) : std::nullopt;
}

}  // namespace kiln
