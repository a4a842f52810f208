#include "words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"

namespace kiln::cli {
namespace {

std::string extents(const TensorSpec& spec) {
  return fmt::format("{}", fmt::join(spec.extents, "x"));
}

// One number where both axes agree.
std::string pair(const std::array<int64_t, 2>& values) {
  return values[0] == values[1] ? fmt::format("{}", values[0]) : fmt::format("{}x{}", values[0], values[1]);
}

std::string pad(const std::array<int64_t, 2>& begin, const std::array<int64_t, 2>& end) {
  return begin == end ? pair(begin) : fmt::format("{}-{}", pair(begin), pair(end));
}

std::string common(const Request& request) {
  const TensorSpec& x = request.at("x");
  std::string text;
  if (x.dtype != DType::f32) text += fmt::format(" {}", to_string(x.dtype));
  if (x.is_packed("nhwc") && !x.is_packed("nchw")) text += " nhwc";
  if (request.dynamic_batch) text += " n=?";
  return text;
}

std::string of_conv(const Request& request) {
  const ConvForward conv = ConvForward::of(request);
  std::string text =
      fmt::format("conv {}{} -> {}, {}x{}", extents(conv.x), common(request), conv.k(), conv.r(), conv.s());
  const std::array<int64_t, 2> none{0, 0}, one{1, 1};
  if (conv.stride != one) text += fmt::format(", stride {}", pair(conv.stride));
  if (conv.pad_begin != none || conv.pad_end != none)
    text += fmt::format(", pad {}", pad(conv.pad_begin, conv.pad_end));
  if (conv.dilation != one) text += fmt::format(", dilation {}", pair(conv.dilation));
  if (conv.groups != 1) text += fmt::format(", groups {}", conv.groups);
  std::vector<std::string_view> stages;
  for (EpilogueStage stage : conv.epilogue) stages.push_back(to_string(stage));
  if (!stages.empty()) text += fmt::format(", {}", fmt::join(stages, "+"));
  return text;
}

std::string of_pool(const Request& request) {
  const PoolForward pool = PoolForward::of(request);
  const std::array<int64_t, 2> none{0, 0}, one{1, 1}, all{pool.h(), pool.width()};
  const std::string window = pool.window == all ? "global" : pair(pool.window);
  std::string text = fmt::format("{} pool {}{}, {}", request.word("mode"), extents(pool.x), common(request), window);
  if (pool.stride != one) text += fmt::format(", stride {}", pair(pool.stride));
  if (pool.pad_begin != none || pool.pad_end != none)
    text += fmt::format(", pad {}", pad(pool.pad_begin, pool.pad_end));
  return text;
}

}  // namespace

std::string summary(const Request& request) {
  if (request.operation == "conv_forward") return of_conv(request);
  if (request.operation == "pool_forward") return of_pool(request);
  const std::string name = request.word("mode") == "log" ? "log-softmax" : "softmax";
  return fmt::format("{} {}{}, axis {}", name, extents(request.at("x")), common(request), request.ints("axis").front());
}

std::string time_text(double seconds) {
  if (seconds < 1e-7) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string percent_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string ratio_text(double ratio) {
  return fmt::format("{:.2f}x", ratio);
}

}  // namespace kiln::cli
