#include "resize/resize_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operations/resize_backward.h"

namespace kiln::descriptor {
namespace {

void add_axis(Prelude& prelude, const ResizeProblem& resize, const ResizeAxis& axis, std::string_view extent,
              std::string_view outputs) {
  prelude.extent(std::string(extent), axis.extent).extent(std::string(outputs), axis.outputs);
  prelude.constant(fmt::format("TAPS_{}", extent), resize.taps(axis));
  prelude.extent(fmt::format("STEP_{}", extent), axis.step).extent(fmt::format("START_{}", extent), axis.start);
  prelude.extent(fmt::format("DENOMINATOR_{}", extent), axis.denominator);
}

constexpr int64_t few_columns = 36;  // whose weights registers hold

// The gradient looks up positions of elements up to three beside x, too.
bool needs_wide_positions(const ResizeAxis& axis) {
  constexpr int64_t limit = int64_t{1} << 30;
  return axis.denominator >= limit / (axis.extent + 3) || axis.start >= limit || axis.step >= limit / axis.outputs;
}

}  // namespace

ResizeProblem ResizeProblem::of(const Request& request) {
  ResizeProblem problem;
  const bool is_gradient = request.operation == "resize_backward";
  static_cast<Resizing&>(problem) = is_gradient ? Resizing(ResizeBackward::of(request)) : Resize::of(request);
  problem.x = request.at(is_gradient ? "dx" : "x");
  problem.y = request.at(is_gradient ? "dy" : "y");
  problem.blend = request.blend;
  problem.dynamic_batch = request.dynamic_batch;
  const int axes = problem.x.rank() - 2;
  const auto axis = [&](int i) { return problem.axis_between(problem.x, problem.y, i); };
  problem.columns = axis(axes - 1);
  if (axes > 1) problem.rows = axis(axes - 2);
  if (axes > 2) problem.planes = axis(0);
  for (const ResizeAxis* one : {&problem.planes, &problem.rows, &problem.columns})
    problem.all_taps *= problem.taps(*one);
  problem.x = with_three_axes(problem.x);
  problem.y = with_three_axes(problem.y);
  return problem;
}

Prelude resize_prelude(const ResizeProblem& resize) {
  Prelude prelude;
  prelude.type("TX", resize.x.dtype).type("TY", resize.y.dtype);
  prelude.index_type("Index", needs_wide_index({&resize.x, &resize.y}));
  prelude.index_type("Position", needs_wide_positions(resize.planes) || needs_wide_positions(resize.rows) ||
                                     needs_wide_positions(resize.columns));
  add_batch(prelude, resize.n(), resize.dynamic_batch);
  prelude.extent("C", resize.c());
  add_axis(prelude, resize, resize.planes, "D", "Z");
  add_axis(prelude, resize, resize.rows, "H", "P");
  add_axis(prelude, resize, resize.columns, "W", "Q");
  add_strides(prelude, "X", "NCDHW", resize.x);
  add_strides(prelude, "Y", "NCZPQ", resize.y);
  prelude.constant("MODE", static_cast<int64_t>(resize.mode));
  prelude.constant("ROUNDING", static_cast<int64_t>(resize.rounding));
  prelude.flag("EXCLUDES_OUTSIDE", resize.excludes_outside);
  add_blend(prelude, resize.blend);
  return prelude;
}

Launch resize_launch(std::string entry, int threads) {
  Launch launch = unary_launch(std::move(entry), threads);
  append(launch, {OperationScalar{0}});
  return launch;
}

bool channels_fit(const ResizeProblem& resize, int vector) {
  return vector_fits(resize.x, {dimension::channel}, vector) && vector_fits(resize.y, {dimension::channel}, vector);
}

StreamingWork resize_work(const ResizeProblem& resize, double threads, double outputs, double loads, double load_bytes,
                          double lane_bytes_of_x) {
  const auto x_bytes = static_cast<double>(resize.x.elements() * size_of(resize.x.dtype));
  const auto y_bytes = static_cast<double>(resize.y.elements() * size_of(resize.y.dtype));
  StreamingWork work;
  work.cache_bytes = threads * loads * lane_bytes_of_x + y_bytes;
  work.dram_bytes = std::min(x_bytes, threads * loads * lane_bytes_of_x) + y_bytes;
  if (resize.blend.beta != Scale::zero) work.dram_bytes += y_bytes;
  work.threads = threads;
  const auto terms = static_cast<double>(resize.all_taps);
  const double weights = resize.mode == ResizeMode::nearest ? 20 : resize.mode == ResizeMode::linear ? 30 : 90;
  work.instructions_per_thread = 40 + weights + loads * 6 + outputs * (6 + 3 * terms);
  work.registers_per_thread = 32 + 2 * outputs;
  work.bytes_in_flight_per_thread = load_bytes * std::min(loads, 8.0);
  return work;
}

int64_t most_outputs(const ResizeProblem& resize, const ResizeAxis& axis) {
  if (axis.step == 0) return axis.outputs;
  // As outputs_of() of lib/resize_gradient.cuh has them: inside, and at both ends.
  const bool is_cubic = resize.taps(axis) == 4;
  const int64_t behind = is_cubic ? 2 : 1, before = is_cubic ? 1 : 0;
  const auto first = [&](int64_t numerator) {
    return std::clamp<int64_t>(numerator <= 0 ? 0 : ceil_div(numerator, axis.step), 0, axis.outputs);
  };
  const int64_t inside = ceil_div((behind + before + 1) * axis.denominator, axis.step) + 1;
  const int64_t at_begin = axis.extent == 1 ? axis.outputs : first((before + 1) * axis.denominator - axis.start);
  const int64_t at_end = axis.outputs - first((axis.extent - 1 - behind) * axis.denominator - axis.start);
  return std::min(axis.outputs, std::max({inside, at_begin, at_end}));
}

Prelude resize_backward_prelude(const ResizeProblem& resize, bool keeps_columns) {
  const int64_t most = most_outputs(resize, resize.columns);
  Prelude prelude = resize_prelude(resize);
  prelude.constant("MOST_COLUMNS", keeps_columns && most <= few_columns ? most : 0);
  return prelude;
}

Launch resize_backward_launch(std::string entry, int threads) {
  return launch_of(std::move(entry), threads,
                   {OperandArgument{"dy"}, OperandArgument{"dx"}, Scalar::alpha, Scalar::beta, UserArgument{},
                    Scalar::n, OperationScalar{0}});
}

StreamingWork resize_backward_work(const ResizeProblem& resize, double threads, double elements, double loads,
                                   double load_bytes, double lane_bytes_of_dy) {
  const auto x_bytes = static_cast<double>(resize.x.elements() * size_of(resize.x.dtype));
  const auto y_bytes = static_cast<double>(resize.y.elements() * size_of(resize.y.dtype));
  // Rows of dy that an element of dx is a sum of, and columns of each.
  const auto rows = static_cast<double>(most_outputs(resize, resize.planes) * most_outputs(resize, resize.rows));
  const int64_t columns = most_outputs(resize, resize.columns);
  const double places = rows * static_cast<double>(columns);
  const double weight = resize.mode == ResizeMode::nearest ? 15 : resize.mode == ResizeMode::linear ? 25 : 80;
  StreamingWork work;
  work.cache_bytes = threads * places * loads * lane_bytes_of_dy + x_bytes;
  work.dram_bytes = std::min(y_bytes, threads * places * loads * lane_bytes_of_dy) + x_bytes;
  if (resize.blend.beta != Scale::zero) work.dram_bytes += x_bytes;
  work.threads = threads;
  const double looked_up = rows + (columns <= few_columns ? static_cast<double>(columns) : places);
  work.instructions_per_thread = 60 + looked_up * weight + places * (4 + loads * 3 + elements * 2) + elements * 6;
  work.registers_per_thread = 40 + 2 * elements;
  work.bytes_in_flight_per_thread = load_bytes * std::min(loads * places, 8.0);
  return work;
}

}  // namespace kiln::descriptor
