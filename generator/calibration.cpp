#include "kiln/generator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kiln/base/error.h"

namespace kiln {
namespace {

struct Figure {
  std::string_view name;
  double Calibration::*value;
};

constexpr std::array<Figure, 10> figures = {{{"copy_efficiency", &Calibration::copy_efficiency},
                                             {"l2_bytes_per_clock", &Calibration::l2_bytes_per_clock},
                                             {"fma_efficiency", &Calibration::fma_efficiency},
                                             {"shared_efficiency", &Calibration::shared_efficiency},
                                             {"launch_seconds", &Calibration::launch_seconds},
                                             {"tf32_efficiency", &Calibration::tf32_efficiency},
                                             {"f16_efficiency", &Calibration::f16_efficiency},
                                             {"fp8_efficiency", &Calibration::fp8_efficiency},
                                             {"int8_efficiency", &Calibration::int8_efficiency},
                                             {"f16_sums_efficiency", &Calibration::f16_sums_efficiency}}};

// Figures of tensor cores have no value by default, and may be missing.
bool may_be_missing(const Figure& figure) {
  return Calibration{}.*figure.value == 0;
}

}  // namespace

double Calibration::*Calibration::share_of(MathClass math) {
  switch (math) {
    case MathClass::f32_lanes:
      return &Calibration::fma_efficiency;
    case MathClass::tensor_tf32:
      return &Calibration::tf32_efficiency;
    case MathClass::tensor_f16:
      return &Calibration::f16_efficiency;
    case MathClass::tensor_f16_sums:
      return &Calibration::f16_sums_efficiency;
    case MathClass::tensor_fp8:
      return &Calibration::fp8_efficiency;
    case MathClass::tensor_int8:
      return &Calibration::int8_efficiency;
  }
  throw Error(ErrorCode::internal, fmt::format("no figure is the share of math class {}", static_cast<int>(math)));
}

std::string Calibration::print() const {
  std::string text;
  for (const Figure& figure : figures) {
    const double value = this->*figure.value;
    if (value == 0 && may_be_missing(figure)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", figure.name, value);
  }
  return text;
}

std::optional<Calibration> Calibration::parse(std::string_view text) {
  Calibration result;
  for (const Figure& figure : figures) {
    const std::string_view field = text.substr(0, text.find(' '));
    const size_t equals = field.find('=');
    if (field.substr(0, equals) != figure.name || equals == std::string_view::npos) {
      if (may_be_missing(figure)) continue;
      return std::nullopt;
    }
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    double& value = result.*figure.value;
    const auto [stop, error] = std::from_chars(field.data() + equals + 1, field.data() + field.size(), value);
    if (error != std::errc() || stop != field.data() + field.size()) return std::nullopt;
    if (!std::isfinite(value) || value <= 0) return std::nullopt;
  }
  return text.empty() ? std::optional(result) : std::nullopt;
}

}  // namespace kiln
