#include "resize/resize_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

void add_axis(Prelude& prelude, const ResizeProblem& resize, const ResizeAxis& axis, std::string_view extent,
              std::string_view outputs) {
  prelude.extent(std::string(extent), axis.extent).extent(std::string(outputs), axis.outputs);
  prelude.constant(fmt::format("TAPS_{}", extent), resize.taps(axis));
  prelude.extent(fmt::format("STEP_{}", extent), axis.step).extent(fmt::format("START_{}", extent), axis.start);
  prelude.extent(fmt::format("DENOMINATOR_{}", extent), axis.denominator);
}

bool needs_wide_positions(const ResizeAxis& axis) {
  constexpr int64_t limit = int64_t{1} << 30;
  return axis.denominator >= limit || axis.start >= limit || axis.step >= limit / axis.outputs;
}

}  // namespace

ResizeProblem ResizeProblem::of(const Request& request) {
  ResizeProblem problem;
  static_cast<Resize&>(problem) = Resize::of(request);
  const int axes = problem.axes();
  problem.columns = problem.axis(axes - 1);
  if (axes > 1) problem.rows = problem.axis(axes - 2);
  if (axes > 2) problem.planes = problem.axis(0);
  for (const ResizeAxis* axis : {&problem.planes, &problem.rows, &problem.columns})
    problem.all_taps *= problem.taps(*axis);
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

}  // namespace kiln::descriptor
