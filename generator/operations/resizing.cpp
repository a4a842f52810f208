#include "operations/resizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "kiln/base/error.h"
#include "operations/spatial.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;
using Wide = __int128;

constexpr int64_t largest_part = (int64_t{1} << 31) - 1;  // of a fraction
constexpr int64_t farthest = int64_t{1} << 61;            // numerator of a position

constexpr std::array all_modes = {ResizeMode::nearest, ResizeMode::linear, ResizeMode::cubic};
constexpr std::array all_coordinates = {ResizeCoordinates::half_pixel,         ResizeCoordinates::half_pixel_symmetric,
                                        ResizeCoordinates::pytorch_half_pixel, ResizeCoordinates::align_corners,
                                        ResizeCoordinates::asymmetric,         ResizeCoordinates::tf_half_pixel_for_nn};
constexpr std::array all_roundings = {ResizeRounding::prefer_floor, ResizeRounding::prefer_ceil, ResizeRounding::floor,
                                      ResizeRounding::ceil};

// The axis as a fraction of integers that may be too large.
struct WideAxis {
  Wide step = 0, start = 0, denominator = 1;
};

WideAxis wide_axis(ResizeCoordinates coordinates, int64_t extent, int64_t outputs, ResizeScale scale) {
  const bool given = scale.up != 0;
  const Wide up = given ? scale.up : outputs, down = given ? scale.down : extent;
  switch (coordinates) {
    case ResizeCoordinates::half_pixel:
      return {2 * down, down - up, 2 * up};
    case ResizeCoordinates::half_pixel_symmetric:
      return {2 * down, down - up + up * extent - down * outputs, 2 * up};
    case ResizeCoordinates::pytorch_half_pixel:
      if (outputs == 1) return {};
      return {2 * down, down - up, 2 * up};
    case ResizeCoordinates::align_corners:
      if (outputs == 1 || up * extent <= down) return {};
      return {down * (extent - 1), 0, up * extent - down};
    case ResizeCoordinates::asymmetric:
      return {down, 0, up};
    case ResizeCoordinates::tf_half_pixel_for_nn:
      return {2 * down, down, 2 * up};
  }
  return {};
}

Wide divisor_of(Wide a, Wide b) {
  a = a < 0 ? -a : a;
  return b == 0 ? a : divisor_of(b, a % b);
}

// In its lowest terms; nothing if 64 bits do not hold all positions.
std::optional<ResizeAxis> exact_axis(ResizeCoordinates coordinates, int64_t extent, int64_t outputs,
                                     ResizeScale scale) {
  const WideAxis wide = wide_axis(coordinates, extent, outputs, scale);
  const Wide divisor = divisor_of(divisor_of(wide.step, wide.start), wide.denominator);
  const Wide step = wide.step / divisor, start = wide.start / divisor, denominator = wide.denominator / divisor;
  const Wide last = step * outputs + start;
  // The gradient looks at positions of elements outside of x, too.
  if (last > farthest || denominator > farthest || (extent + 3) * denominator > 2 * farthest) return std::nullopt;
  return ResizeAxis{extent, outputs, static_cast<int64_t>(step), static_cast<int64_t>(start),
                    static_cast<int64_t>(denominator)};
}

// Whether `outputs` is x's extent times the scale, rounded down, if the product may be rounded as in f32.
bool fits(const ResizeScale& scale, int64_t extent, int64_t outputs) {
  constexpr double slack = 0x1p-22;
  const double product = static_cast<double>(extent) * static_cast<double>(scale.up) / static_cast<double>(scale.down);
  const auto given = static_cast<double>(outputs);
  return given <= product * (1 + slack) && given + 1 >= product * (1 - slack);
}

std::vector<ResizeScale> scales_of(const Request& request) {
  const Ints &up = request.ints("up"), &down = request.ints("down");
  std::vector<ResizeScale> scales(up.size());
  for (size_t i = 0; i < up.size(); ++i) scales[i] = {up[i], down[i]};
  return scales;
}

void set_word(Request& request, std::string_view name, std::string_view word) {
  for (Attribute& attribute : request.attributes) {
    if (attribute.name == name) attribute.value = std::string(word);
  }
}

// Fractions in their lowest terms.
void reduce_scales(Request& request) {
  Ints up = request.ints("up"), down = request.ints("down");
  for (size_t i = 0; i < up.size(); ++i) {
    if (up[i] <= 0 || down[i] <= 0) continue;  // refused, or left out
    const int64_t divisor = std::gcd(up[i], down[i]);
    up[i] /= divisor;
    down[i] /= divisor;
  }
  set_ints(request, "up", std::move(up));
  set_ints(request, "down", std::move(down));
}

void check_axis(const Request& request, std::string_view input, std::string_view output, int i,
                const Resizing& resizing) {
  const auto at = static_cast<size_t>(i) + 2;
  const int64_t extent = request.at(input).extents[at], outputs = request.at(output).extents[at];
  const ResizeScale& scale = resizing.scales[static_cast<size_t>(i)];
  const std::string name(axis_name(i, request.at(input).rank() - 2));
  for (const auto& [operand, value] : {std::pair{input, extent}, std::pair{output, outputs}}) {
    if (value < 1) refuse(request, fmt::format("{} has extent {} along {}", operand, value, name), "give 1 or more");
  }
  const auto is_part = [](int64_t part) { return part >= 1 && part <= largest_part; };
  if (!(scale.up == 0 && scale.down == 0) && !(is_part(scale.up) && is_part(scale.down))) {
    refuse(request, fmt::format("the scale of {} is {}/{}", name, scale.up, scale.down),
           fmt::format("up and down are 1 to {}, or both 0", largest_part));
  }
  if (scale.up != 0 && !fits(scale, extent, outputs)) {
    refuse(request,
           fmt::format("{} has extent {} along {}, expected {}", output, outputs, name, scaled_extent(extent, scale)),
           fmt::format("{}'s {} times {}/{}, rounded down", input, extent, scale.up, scale.down));
  }
  if (!exact_axis(resizing.coordinates, extent, outputs, scale)) {
    refuse(request, fmt::format("positions along {} do not fit 64 bits", name), "give a scale of smaller terms");
  }
}

}  // namespace

std::string_view to_string(ResizeMode mode) {
  switch (mode) {
    case ResizeMode::nearest:
      return "nearest";
    case ResizeMode::linear:
      return "linear";
    case ResizeMode::cubic:
      return "cubic";
  }
  return "?";
}

std::string_view to_string(ResizeCoordinates coordinates) {
  switch (coordinates) {
    case ResizeCoordinates::half_pixel:
      return "half_pixel";
    case ResizeCoordinates::half_pixel_symmetric:
      return "half_pixel_symmetric";
    case ResizeCoordinates::pytorch_half_pixel:
      return "pytorch_half_pixel";
    case ResizeCoordinates::align_corners:
      return "align_corners";
    case ResizeCoordinates::asymmetric:
      return "asymmetric";
    case ResizeCoordinates::tf_half_pixel_for_nn:
      return "tf_half_pixel_for_nn";
  }
  return "?";
}

std::string_view to_string(ResizeRounding rounding) {
  switch (rounding) {
    case ResizeRounding::prefer_floor:
      return "prefer_floor";
    case ResizeRounding::prefer_ceil:
      return "prefer_ceil";
    case ResizeRounding::floor:
      return "floor";
    case ResizeRounding::ceil:
      return "ceil";
  }
  return "?";
}

int64_t ResizeAxis::element_before(int64_t output) const {
  const int64_t numerator = output * step + start;
  return numerator >= 0 ? numerator / denominator : -((denominator - 1 - numerator) / denominator);
}

int64_t ResizeAxis::beyond(int64_t output) const {
  return output * step + start - element_before(output) * denominator;
}

ResizeScale ResizeScale::of(float scale) {
  if (scale == 0) return {};
  if (!(scale >= 0x1p-7F && scale <= 0x1p7F)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("resize: the scale is {}", scale),
                "give 1/128 to 128, or 0 for the ratio of the extents");
  }
  constexpr int64_t down = int64_t{1} << 30;  // an f32 from 2^-7 on is a multiple of 2^-30
  const auto up = static_cast<int64_t>(std::ldexp(static_cast<double>(scale), 30));
  const int64_t divisor = std::gcd(up, down);
  return {up / divisor, down / divisor};
}

ResizeAxis Resizing::axis_between(const TensorSpec& x, const TensorSpec& y, int axis) const {
  const auto at = static_cast<size_t>(axis);
  const ResizeScale scale = scales.empty() ? ResizeScale{} : scales[at];
  return *exact_axis(coordinates, x.extents[at + 2], y.extents[at + 2], scale);
}

int Resizing::taps(const ResizeAxis& axis) const {
  if (mode == ResizeMode::nearest || axis.is_whole()) return 1;
  return mode == ResizeMode::linear ? 2 : 4;
}

std::vector<AttributeDefinition> resizing_attributes() {
  return {
      {"mode", std::string("nearest"), Printing::always, words_of(all_modes), "what an element of y is made of"},
      {"coordinates", std::string("half_pixel"), Printing::always, words_of(all_coordinates),
       "where elements of y stand in x"},
      {"rounding", std::string("prefer_floor"), Printing::when_set, words_of(all_roundings),
       "with mode=nearest, which element of x is nearest to a position"},
      {"outside",
       std::string("edge"),
       Printing::when_set,
       {"edge", "excluded"},
       "with mode=cubic. edge: elements outside x are the nearest of x. excluded: they do not count, and the weights "
       "of the others are divided by their sum"},
      {"up",
       Ints{0},
       Printing::when_set,
       {},
       "numerators of the scales of the axes (h,w in 2-D), y to x; 0: the ratio of the extents"},
      {"down", Ints{0}, Printing::when_set, {}, "their denominators"},
  };
}

const std::vector<ScalarDefinition>& resizing_scalars() {
  static const std::vector<ScalarDefinition> definitions = {
      {"cubic", -0.75F, -0.625F, "a of mode=cubic, from -1 to 0: PyTorch has -0.75, Catmull-Rom splines -0.5"}};
  return definitions;
}

std::vector<ScalarRule> resizing_scalar_rules(const Request& request) {
  if (request.word("mode") != "cubic") return {};
  return {{0, -1, 0, "give -1 to 0; -0.75 and -0.5 are usual"}};
}

void complete_resizing(Request& request, std::string_view input) {
  const auto axes = static_cast<size_t>(spatial_axes(request, input));
  for (const char* part : {"up", "down"}) expand(request, part, axes, 1);
  reduce_scales(request);
  if (request.word("mode") != "nearest") set_word(request, "rounding", "prefer_floor");
  if (request.word("mode") != "cubic") set_word(request, "outside", "edge");
}

void check_resizing(const Request& request, std::string_view input, std::string_view output) {
  const int axes = spatial_axes(request, input);
  const TensorSpec &x = request.at(input), &y = request.at(output);
  if (x.extents[1] < 1) refuse(request, fmt::format("{} has no channels", input), "");
  if (y.rank() != x.rank()) {
    refuse(request, fmt::format("{} has {} and {} has {} dimensions", input, x.rank(), output, y.rank()),
           "they have equally many");
  }
  Ints expected = y.extents;
  expected[0] = x.extents[0];
  expected[1] = x.extents[1];
  require_extents(request, output, y, expected, fmt::format("N and C are those of {}", input));
  const Resizing resizing = resizing_of(request);
  for (int i = 0; i < axes; ++i) check_axis(request, input, output, i, resizing);
}

int64_t scaled_extent(int64_t extent, const ResizeScale& scale) {
  return scale.down <= 0 ? extent : static_cast<int64_t>(Wide{extent} * scale.up / scale.down);
}

double taps_per_output(const Request& request, std::string_view input, std::string_view output) {
  const Resizing resizing = resizing_of(request);
  const TensorSpec &x = request.at(input), &y = request.at(output);
  double taps = 1;
  for (int i = 0; i < x.rank() - 2; ++i) taps *= resizing.taps(resizing.axis_between(x, y, i));
  return taps;
}

Resizing resizing_of(const Request& request) {
  Resizing resizing;
  resizing.mode = word_of(request, "mode", all_modes);
  resizing.coordinates = word_of(request, "coordinates", all_coordinates);
  resizing.rounding = word_of(request, "rounding", all_roundings);
  resizing.excludes_outside = request.word("outside") == "excluded";
  resizing.scales = scales_of(request);
  return resizing;
}

std::vector<Attribute> attributes_of(const Resizing& resizing) {
  Ints up, down;
  for (const ResizeScale& scale : resizing.scales) {
    up.push_back(scale.up);
    down.push_back(scale.down);
  }
  return {{"mode", std::string(to_string(resizing.mode))},
          {"coordinates", std::string(to_string(resizing.coordinates))},
          {"rounding", std::string(to_string(resizing.rounding))},
          {"outside", std::string(resizing.excludes_outside ? "excluded" : "edge")},
          {"up", given_or(up, 0)},
          {"down", given_or(down, 0)}};
}

}  // namespace kiln
