#include "kiln/generator/operations/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "kiln/base/error.h"
#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;
using Wide = __int128;

constexpr int64_t largest_part = (int64_t{1} << 31) - 1;  // of a fraction
constexpr int64_t farthest = int64_t{1} << 61;            // numerator of a position

template <class Word, size_t count>
Word word_of(const Request& request, std::string_view attribute, const std::array<Word, count>& all) {
  const std::string& given = request.word(attribute);
  return *std::find_if(all.begin(), all.end(), [&](Word word) { return to_string(word) == given; });
}

template <class Word, size_t count>
std::vector<std::string> words_of(const std::array<Word, count>& all) {
  std::vector<std::string> words;
  for (const Word word : all) words.emplace_back(to_string(word));
  return words;
}

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
std::optional<ResizeAxis> axis_between(ResizeCoordinates coordinates, int64_t extent, int64_t outputs,
                                       ResizeScale scale) {
  const WideAxis wide = wide_axis(coordinates, extent, outputs, scale);
  const Wide divisor = divisor_of(divisor_of(wide.step, wide.start), wide.denominator);
  const Wide step = wide.step / divisor, start = wide.start / divisor, denominator = wide.denominator / divisor;
  const Wide last = step * outputs + start;
  if (last > farthest || denominator > farthest) return std::nullopt;
  return ResizeAxis{extent, outputs, static_cast<int64_t>(step), static_cast<int64_t>(start),
                    static_cast<int64_t>(denominator)};
}

// x's extent times the scale, rounded down.
int64_t scaled(int64_t extent, const ResizeScale& scale) {
  return scale.down <= 0 ? extent : static_cast<int64_t>(Wide{extent} * scale.up / scale.down);
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

// Extents of y along the spatial axes where y is left out; none if nothing says them.
Ints implied_extents(const Request& request, const TensorSpec& x) {
  const Ints& size = request.ints("size");
  if (!size.empty()) return size;
  Ints extents;
  const std::vector<ResizeScale> scales = scales_of(request);
  for (size_t i = 0; i < scales.size(); ++i) extents.push_back(scaled(x.extents[i + 2], scales[i]));
  const bool all_left_out =
      std::all_of(scales.begin(), scales.end(), [](const ResizeScale& scale) { return scale.up == 0; });
  return all_left_out ? Ints{} : extents;
}

class ResizeOperation final : public Operation {
 public:
  std::string_view name() const override { return "resize"; }
  std::string_view summary() const override { return "x at other spatial extents: nearest, linear or cubic"; }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "N C W; N C H W; N C D H W",
         .dtypes = DTypes::floating | DTypes::integers},
        {.name = "y",
         .role = Role::output,
         .extents = "N C Q; N C P Q; N C Z P Q",
         .left_out = "dtype and layout of x; spatial extents `size`, or x's times `up` / `down`, rounded down",
         .dtypes = DTypes::floating | DTypes::integers},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
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
        {"size", Ints{}, Printing::never, {}, "where y is left out, its spatial extents"},
    };
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> definitions = {
        {"cubic", -0.75F, -0.625F, "a of mode=cubic, from -1 to 0: PyTorch has -0.75, Catmull-Rom splines -0.5"}};
    return definitions;
  }
  std::vector<ScalarRule> scalar_rules(const Request& request) const override {
    if (request.word("mode") != "cubic") return {};
    return {{0, -1, 0, "give -1 to 0; -0.75 and -0.5 are usual"}};
  }

  void complete_attributes(Request& request) const override {
    const auto axes = static_cast<size_t>(spatial_axes(request));
    for (const char* part : {"up", "down"}) expand(request, part, axes, 1);
    if (const Ints size = given_ints(request, "size"); !size.empty()) expand(request, "size", axes, 1);
    reduce_scales(request);
    if (request.word("mode") != "nearest") set_word(request, "rounding", "prefer_floor");
    if (request.word("mode") != "cubic") set_word(request, "outside", "edge");
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "y" || x == nullptr) return std::nullopt;
    const Ints spatial = implied_extents(request, *x);
    if (spatial.empty()) return std::nullopt;
    Ints extents = {x->extents[0], x->extents[1]};
    extents.insert(extents.end(), spatial.begin(), spatial.end());
    return laid_out_like(*x, std::move(extents));
  }

  void validate(const Request& request) const override {
    const int axes = spatial_axes(request);
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    if (x.extents[1] < 1) refuse(request, "x has no channels", "");
    if (y.rank() != x.rank()) {
      refuse(request, fmt::format("x has {} and y has {} dimensions", x.rank(), y.rank()), "they have equally many");
    }
    Ints expected = y.extents;
    expected[0] = x.extents[0];
    expected[1] = x.extents[1];
    require_extents(request, "y", y, expected, "N and C are those of x");
    const std::vector<ResizeScale> scales = scales_of(request);
    for (int i = 0; i < axes; ++i) check_axis_between(request, i, scales[static_cast<size_t>(i)]);
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    double taps = 1;
    const Resize view = Resize::of(request);
    for (int i = 0; i < view.axes(); ++i) taps *= view.taps(view.axis(i));
    work.flops = static_cast<double>(y.elements()) * (taps == 1 ? 0 : 2 * taps);
    work.read_bytes = std::min(bytes_of(x), static_cast<double>(y.elements()) * taps * size_of(x.dtype));
    work.write_bytes = bytes_of(y);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }

 private:
  static void set_word(Request& request, std::string_view name, std::string_view word) {
    for (Attribute& attribute : request.attributes) {
      if (attribute.name == name) attribute.value = std::string(word);
    }
  }

  // Fractions in their lowest terms.
  static void reduce_scales(Request& request) {
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

  static void check_axis_between(const Request& request, int i, const ResizeScale& scale) {
    const auto at = static_cast<size_t>(i) + 2;
    const int64_t extent = request.at("x").extents[at], outputs = request.at("y").extents[at];
    const std::string name(axis_name(i, request.at("x").rank() - 2));
    for (const auto& [operand, value] : {std::pair{"x", extent}, std::pair{"y", outputs}}) {
      if (value < 1) refuse(request, fmt::format("{} has extent {} along {}", operand, value, name), "give 1 or more");
    }
    const auto is_part = [](int64_t part) { return part >= 1 && part <= largest_part; };
    if (!(scale.up == 0 && scale.down == 0) && !(is_part(scale.up) && is_part(scale.down))) {
      refuse(request, fmt::format("the scale of {} is {}/{}", name, scale.up, scale.down),
             fmt::format("up and down are 1 to {}, or both 0", largest_part));
    }
    if (scale.up != 0 && !fits(scale, extent, outputs)) {
      refuse(request, fmt::format("y has extent {} along {}, expected {}", outputs, name, scaled(extent, scale)),
             fmt::format("x's {} times {}/{}, rounded down", extent, scale.up, scale.down));
    }
    const Resize view = Resize::of(request);
    if (!axis_between(view.coordinates, extent, outputs, scale)) {
      refuse(request, fmt::format("positions along {} do not fit 64 bits", name), "give a scale of smaller terms");
    }
  }
};

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

const Operation& resize_operation() {
  static const ResizeOperation definition;
  return definition;
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

ResizeAxis Resize::axis(int axis) const {
  const auto at = static_cast<size_t>(axis);
  const ResizeScale scale = scales.empty() ? ResizeScale{} : scales[at];
  return *axis_between(coordinates, x.extents[at + 2], y.extents[at + 2], scale);
}

int Resize::taps(const ResizeAxis& axis) const {
  if (mode == ResizeMode::nearest || axis.is_whole()) return 1;
  return mode == ResizeMode::linear ? 2 : 4;
}

Resize Resize::of(const Request& request) {
  Resize view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.mode = word_of(request, "mode", all_modes);
  view.coordinates = word_of(request, "coordinates", all_coordinates);
  view.rounding = word_of(request, "rounding", all_roundings);
  view.excludes_outside = request.word("outside") == "excluded";
  view.scales = scales_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request Resize::request() const {
  Request request;
  request.operation = "resize";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  Ints up, down;
  for (const ResizeScale& scale : scales) {
    up.push_back(scale.up);
    down.push_back(scale.down);
  }
  request.attributes = {{"mode", std::string(to_string(mode))},
                        {"coordinates", std::string(to_string(coordinates))},
                        {"rounding", std::string(to_string(rounding))},
                        {"outside", std::string(excludes_outside ? "excluded" : "edge")},
                        {"up", given_or(up, 0)},
                        {"down", given_or(down, 0)}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
