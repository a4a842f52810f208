#include "short_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/unpool_backward.h"

namespace kiln::cli {
namespace {

std::string extents(const TensorSpec& spec) {
  return fmt::format("{}", fmt::join(spec.extents, "x"));
}

using PerAxis = std::vector<int64_t>;  // one number a spatial axis

// One number where all axes agree.
std::string per_axis(const PerAxis& values) {
  const bool equal = std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values.front(); });
  return equal ? fmt::format("{}", values.front()) : fmt::format("{}", fmt::join(values, "x"));
}

bool all_are(const PerAxis& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
}

// ", stride 2, pad 1", as far as they are not the defaults.
template <class View>
std::string steps_and_pads(const View& view) {
  std::string text;
  if (!all_are(view.stride, 1)) text += fmt::format(", stride {}", per_axis(view.stride));
  if (!all_are(view.pad_begin, 0) || !all_are(view.pad_end, 0)) {
    text += fmt::format(", pad {}", per_axis(view.pad_begin));
    if (view.pad_begin != view.pad_end) text += fmt::format("-{}", per_axis(view.pad_end));
  }
  return text;
}

// Whether the operand called `name` would have its dtype if the request left it out.
bool has_implied_dtype(Request request, const std::string& name) {
  const DType dtype = request.at(name).dtype;
  std::erase_if(request.operands, [&](const Operand& operand) { return operand.name == name; });
  try {
    const Request completed = finished(std::move(request));
    const TensorSpec* const implied = completed.find(name);
    return implied != nullptr && implied->dtype == dtype;
  } catch (const Error&) {
    return false;  // it has to be given
  }
}

// " (w f8e4m3, y f32)": the operands with another dtype than `operand`. Not those that cannot have that one, or that
// would have theirs if they were left out.
std::string other_dtypes(const Request& request, std::string_view operand) {
  const Operation& definition = operation(request.operation);
  const DType usual = request.at(operand).dtype;
  std::vector<std::string> others;
  for (const OperandDefinition& other : definition.operands()) {
    const TensorSpec* const spec = request.find(other.name);
    if (spec == nullptr || spec->dtype == usual || !other.dtypes.holds(usual)) continue;
    if (has_implied_dtype(request, other.name)) continue;
    others.push_back(fmt::format("{} {}", other.name, to_string(spec->dtype)));
  }
  return others.empty() ? std::string() : fmt::format(" ({})", fmt::join(others, ", "));
}

// " f16 nhwc": dtype, `always` or if it is not f32, and memory order if it is not the logical one.
std::string stored(const TensorSpec& spec, bool always = false) {
  std::string text;
  if (always || spec.dtype != DType::f32) text += fmt::format(" {}", to_string(spec.dtype));
  if (const auto order = spec.order(); order && order != dimension_letters(spec.rank())) text += " " + *order;
  return text;
}

// Words about the call as a whole.
std::string call_words(const Request& request) {
  std::string text;
  if (request.dynamic_batch) text += " n=?";
  if (request.constant_weights) text += " constant weights";
  return text;
}

// How `operand` is stored, with what others have besides, and the words of the call.
std::string common(const Request& request, std::string_view operand) {
  return stored(request.at(operand)) + other_dtypes(request, operand) + call_words(request);
}

// Words about the operand that comes first.
std::string common(const Request& request) {
  return common(request, request.operands.front().name);
}

// Words that the passes of a convolution share, behind their extents.
template <class View>
std::string window_words(const View& view, const TensorSpec& w) {
  const PerAxis window(w.extents.end() - view.axes(), w.extents.end());
  std::string text = fmt::format(", {}", fmt::join(window, "x")) + steps_and_pads(view);
  if (!all_are(view.dilation, 1)) text += fmt::format(", dilation {}", per_axis(view.dilation));
  if (view.groups != 1) text += fmt::format(", groups {}", view.groups);
  if (!view.grid.empty()) text += fmt::format(", grid {}", fmt::join(view.grid, "x"));
  return text;
}

std::string_view locality(const ConvPass& pass) {
  return pass.grid.empty() ? "" : "local ";
}

// ", bias+relu"; nothing without stages.
std::string stages_of(const Request& request) {
  std::vector<std::string_view> stages;
  for (EpilogueStage stage : request.epilogue) stages.push_back(to_string(stage));
  return stages.empty() ? std::string() : fmt::format(", {}", fmt::join(stages, "+"));
}

std::string of_conv(const Request& request) {
  const ConvForward conv = ConvForward::of(request);
  return fmt::format("{}conv {}{} -> {}", locality(conv), extents(conv.x), common(request), conv.k()) +
         window_words(conv, conv.w) + stages_of(request);
}

// "gemm 8x64x32 by 8x32x48, bias".
std::string of_gemm(const Request& request) {
  return fmt::format("gemm {} by {}{}", extents(request.at("a")), extents(request.at("b")), common(request)) +
         stages_of(request);
}

std::string of_conv_backward_data(const Request& request) {
  const ConvBackwardData conv = ConvBackwardData::of(request);
  return fmt::format("{}conv data gradient {}{} -> {}", locality(conv), extents(conv.dy), common(request),
                     extents(conv.dx)) +
         window_words(conv, conv.w);
}

std::string of_conv_backward_filter(const Request& request) {
  const ConvBackwardFilter conv = ConvBackwardFilter::of(request);
  return fmt::format("{}conv filter gradient {}{}, {}", locality(conv), extents(conv.x), common(request),
                     extents(conv.dy)) +
         window_words(conv, conv.dw);
}

std::string of_pool(const Request& request) {
  const PoolForward pool = PoolForward::of(request);
  const bool global = std::equal(pool.window.begin(), pool.window.end(), pool.x.extents.begin() + 2);
  return fmt::format("{} pool {}{}, {}", request.word("mode"), extents(pool.x), common(request),
                     global ? "global" : per_axis(pool.window)) +
         steps_and_pads(pool);
}

std::string of_pool_backward(const Request& request) {
  const PoolBackward pool = PoolBackward::of(request);
  const bool global = std::equal(pool.window.begin(), pool.window.end(), pool.dx.extents.begin() + 2);
  return fmt::format("{} pool backward {}{}, {}", request.word("mode"), extents(pool.dx), common(request),
                     global ? "global" : per_axis(pool.window)) +
         steps_and_pads(pool);
}

std::string of_unpool_backward(const Request& request) {
  const UnpoolBackward unpool = UnpoolBackward::of(request);
  return fmt::format("unpool backward {}{}, {}", extents(unpool.dy), common(request), per_axis(unpool.window)) +
         steps_and_pads(unpool);
}

std::string of_softmax(const Request& request) {
  const std::string name = request.word("mode") == "log" ? "log-softmax" : "softmax";
  const std::string& result = result_of(request).name;
  return fmt::format("{}{} {}{}, axis {}", result == "dx" ? "gradient of " : "", name, extents(request.at(result)),
                     common(request, result), request.ints("axis").front());
}

// Shape and type of an operation's result: "2x64x56x56 f16".
std::string result_words(const Request& request) {
  const std::string& result = result_of(request).name;
  return extents(request.at(result)) + common(request, result);
}

// "gelu 2x64x56x56 f16", "gradient of gelu ...", "tensor add ...".
std::string of_function(const Request& request) {
  const std::string_view prefix = request.operation == "tensor_op"  ? "tensor "
                                  : result_of(request).name == "dx" ? "gradient of "
                                                                    : "";
  return fmt::format("{}{} {}", prefix, request.word("mode"), result_words(request));
}

// Words for an operation without words of its own: its name and result: "dropout 2x64x56x56 f16".
std::string words_of_any_operation(const Request& request) {
  std::string name = request.operation;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} {}", name, result_words(request));
}

// "transform 2x64x56x56 f16 -> 2x64x56x56 f8e4m3 nhwc".
std::string of_transform(const Request& request) {
  const TensorSpec &x = request.at("x"), &y = request.at("y");
  return fmt::format("transform {}{}{} -> {}{}", extents(x), stored(x), call_words(request), extents(y),
                     stored(y, x.dtype != DType::f32));
}

// "add reduction 2x64x56x56 f16, axes 2,3".
std::string of_reduce(const Request& request) {
  return fmt::format("{} reduction {}{}, axes {}", request.word("mode"), extents(request.at("x")), common(request),
                     fmt::join(request.ints("axes"), ","));
}

// "normalisation 2x64x56x56 f16, axes 0,2,3, add+relu", "rms normalisation ..., swish", "gradient of normalisation
// ...".
std::string of_norm(const Request& request) {
  const bool rms = request.operation != "norm_inference" && request.word("mode") == "rms";
  return fmt::format("{}{}normalisation {}{}, axes {}{}", request.operation == "norm_backward" ? "gradient of " : "",
                     rms ? "rms " : "", extents(request.operands.front().spec), common(request),
                     fmt::join(request.ints("axes"), ","),
                     request.operation == "norm_inference" ? ", running statistics" : "") +
         stages_of(request) + (request.word("activation") == "identity" ? "" : ", " + request.word("activation"));
}

// "local normalisation 2x64x56x56 f16, 5 along axes 1", "gradient of local normalisation ...".
std::string of_local_norm(const Request& request) {
  return fmt::format("{}local normalisation {}{}, {} along axes {}",
                     request.operation == "local_norm_backward" ? "gradient of " : "",
                     extents(request.operands.front().spec), common(request), request.ints("size").front(),
                     fmt::join(request.ints("axes"), ","));
}

}  // namespace

std::string summary(const Request& request) {
  std::string text;
  if (request.operation.ends_with("conv_forward"))
    text = of_conv(request);
  else if (request.operation.ends_with("conv_backward_data"))
    text = of_conv_backward_data(request);
  else if (request.operation.ends_with("conv_backward_filter"))
    text = of_conv_backward_filter(request);
  else if (request.operation == "conv_backward_bias")
    text = fmt::format("conv bias gradient {}{}", extents(request.at("dy")), common(request));
  else if (request.operation == "pool_forward")
    text = of_pool(request);
  else if (request.operation == "pool_backward")
    text = of_pool_backward(request);
  else if (request.operation == "unpool_backward")
    text = of_unpool_backward(request);
  else if (request.operation == "softmax_forward" || request.operation == "softmax_backward")
    text = of_softmax(request);
  else if (request.operation == "reduce")
    text = of_reduce(request);
  else if (request.operation.starts_with("cross_entropy_"))
    text = fmt::format("{}cross entropy {}{}, {}", result_of(request).name == "dx" ? "gradient of " : "",
                       extents(request.at("x")), common(request), request.word("reduction"));
  else if (request.operation == "gemm")
    text = of_gemm(request);
  else if (request.operation.starts_with("norm_"))
    text = of_norm(request);
  else if (request.operation.starts_with("local_norm_"))
    text = of_local_norm(request);
  else if (request.operation.starts_with("activation_") || request.operation == "tensor_op")
    text = of_function(request);
  else if (request.operation == "tensor_transform")
    text = of_transform(request);
  else if (request.operation == "tensor_set")
    text = "set " + result_words(request);
  else
    text = words_of_any_operation(request);
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
