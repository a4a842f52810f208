#include "grid_sample/grid_problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "grid_sample/affine_problem.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {
namespace grid_descriptor {
namespace {

struct Shape {
  int threads;
};

// Results of an image, and loads that each of them takes.
struct Work {
  int64_t results;
  double loads;
};

Work work_of(const GridProblem& problem) {
  const auto taps = static_cast<double>(problem.taps());
  if (problem.operation == "grid_sample") return {problem.c() * problem.pixels(), taps + problem.axes};
  if (problem.operation == "grid_sample_backward_data") {
    return {problem.c() * problem.elements(), static_cast<double>(problem.pixels()) * (taps + problem.axes)};
  }
  return {problem.pixels() * problem.axes, static_cast<double>(problem.c()) * (taps + 1)};
}

Program program(const Shape& shape, const std::string& name, const GridProblem& problem, const Emitter& emit) {
  Prelude prelude = grid_prelude(problem);
  prelude.constant("THREADS", shape.threads);
  Launch launch = grid_launch(problem, name, shape.threads);
  launch.grid[0] = blocks_for(work_of(problem).results, problem.n(), problem.dynamic_batch, shape.threads);
  return program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const GridProblem& problem, const Target& target, const DeviceFigures& device) {
  const Work of_image = work_of(problem);
  StreamingWork work;
  work.dram_bytes = problem.bytes();
  work.threads = static_cast<double>(problem.n() * of_image.results);
  work.cache_bytes = work.threads * of_image.loads * 32;
  work.instructions_per_thread = 150 + of_image.loads * 12;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 4 * size_of(problem.image.dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace grid_descriptor

GridProblem GridProblem::of(const Request& request) {
  GridProblem problem;
  const auto take = [&](const auto& view, const TensorSpec& of_image, const TensorSpec& of_pixels) {
    static_cast<GridSampling&>(problem) = view;
    problem.image = with_three_axes(of_image);
    problem.sampled = with_three_axes(of_pixels);
    problem.grid = grid_with_planes(view.grid);
    problem.axes = of_image.rank() - 2;
  };
  if (request.operation == "grid_sample") {
    const GridSample view = GridSample::of(request);
    take(view, view.x, view.y);
  } else if (request.operation == "grid_sample_backward_data") {
    const GridSampleBackwardData view = GridSampleBackwardData::of(request);
    take(view, view.dx, view.dy);
  } else {
    const GridSampleBackwardGrid view = GridSampleBackwardGrid::of(request);
    take(view, view.x, view.dy);
    problem.dgrid = grid_with_planes(view.dgrid);
  }
  problem.operation = request.operation;
  for (const OperandDefinition& definition : kiln::operation(request.operation).operands()) {
    problem.names.push_back(definition.name);
  }
  return problem;
}

int64_t GridProblem::taps() const {
  const int64_t along = mode == GridMode::nearest ? 1 : mode == GridMode::linear ? 2 : 4;
  return along * along * (axes == 3 ? along : 1);
}

int64_t GridProblem::sum_bits() const {
  return bits_of_sum(pixels() * taps());
}

double GridProblem::bytes() const {
  double bytes = 0;
  for (const TensorSpec* spec : {&image, &sampled, &grid, &dgrid}) {
    if (!spec->extents.empty()) bytes += bytes_of(*spec);
  }
  return bytes;
}

Prelude grid_prelude(const GridProblem& problem) {
  const bool has_dgrid = !problem.dgrid.extents.empty();
  const TensorSpec& dgrid = has_dgrid ? problem.dgrid : problem.grid;
  Prelude prelude;
  prelude.type("TIMAGE", problem.image.dtype).type("TSAMPLED", problem.sampled.dtype);
  prelude.type("TGRID", problem.grid.dtype).type("TDGRID", dgrid.dtype);
  prelude.index_type("Index", needs_wide_index({&problem.image, &problem.sampled, &problem.grid, &dgrid}));
  add_batch(prelude, problem.n(), problem.dynamic_batch);
  prelude.constant("MODE", static_cast<int64_t>(problem.mode))
      .constant("PADDING", static_cast<int64_t>(problem.padding));
  prelude.constant("ENDS", static_cast<int64_t>(problem.ends)).constant("AXES", problem.axes);
  prelude.extent("C", problem.c()).extent("PIXELS", problem.pixels());
  constexpr const char *of_image[] = {"D", "H", "W"}, *of_pixels[] = {"Z", "P", "Q"};
  for (size_t i = 0; i < 3; ++i) {
    prelude.extent(of_image[i], problem.image.extents[2 + i]).extent(of_pixels[i], problem.sampled.extents[2 + i]);
  }
  add_strides(prelude, "IMAGE", "NCDHW", problem.image);
  add_strides(prelude, "SAMPLED", "NCZPQ", problem.sampled);
  add_strides(prelude, "GRID", "NZPQE", problem.grid);
  add_strides(prelude, "DGRID", "NZPQE", dgrid);
  add_blend(prelude, problem.blend);
  return prelude;
}

Launch grid_launch(const GridProblem& problem, std::string entry, int threads,
                   const std::vector<WorkspaceArgument>& workspace) {
  Launch launch = launch_of(std::move(entry), threads);
  for (const std::string& name : problem.names) launch.arguments.push_back(OperandArgument{name});
  for (const WorkspaceArgument& each : workspace) launch.arguments.push_back(each);
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

void add_grid_pixels(Prelude& prelude, const GridPixelShape& shape) {
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes).constant("CHANNELS", shape.channels);
}

void lay_out_pixels(const GridPixelShape& shape, const GridProblem& problem, bool by_channels, Launch& launch) {
  launch.grid[0] = blocks_for(problem.pixels() * shape.lanes, problem.n(), problem.dynamic_batch, shape.threads);
  if (by_channels) launch.grid[1] = Count{ceil_div(problem.c(), int64_t{shape.lanes} * shape.channels)};
}

bool grid_lanes_have_work(const GridPixelShape& shape, const GridProblem& problem, const Target&) {
  const bool are_apart = inner_of(problem.image) == Inner::pixels && inner_of(problem.sampled) == Inner::pixels;
  if (shape.lanes > 1 && (are_apart || problem.c() <= shape.lanes / 2)) return false;
  return shape.channels == 1 || int64_t{shape.lanes} * shape.channels / 2 < problem.c();
}

bool opens_grid_pixels(const GridPixelShape& shape, const GridProblem& problem, const Target& target) {
  return shape.threads == 128 && grid_lanes_have_work(shape, problem, target);
}

Estimate predict_grid_pixels(const GridPixelShape& shape, const GridProblem& problem, bool by_channels, double passes,
                             const Target& target, const DeviceFigures& device) {
  const auto taps = static_cast<double>(problem.taps()), channels = static_cast<double>(problem.c());
  const double of_thread = by_channels ? shape.channels : std::ceil(channels / shape.lanes);
  const double chunks = by_channels ? std::ceil(channels / (static_cast<double>(shape.lanes) * shape.channels)) : 1;
  const auto pixels = static_cast<double>(problem.n() * problem.pixels());
  StreamingWork work;
  work.dram_bytes = problem.bytes() * passes;
  work.cache_bytes = passes * pixels * channels * taps * (shape.lanes > 1 ? 4 : 16);
  work.threads = pixels * shape.lanes * chunks;
  work.instructions_per_thread = passes * (80 + 12 * taps + of_thread * taps * 4);
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.launches = static_cast<int>(passes);
  work.bytes_in_flight_per_thread = std::min(16.0, taps * shape.channels) * size_of(problem.image.dtype);
  return streaming_estimate(work, target.arch, device);
}

Algorithm simple_grid_sample(const std::string& operation) {
  using namespace grid_descriptor;
  const std::string name = operation + "_simple";
  return describe<Shape, GridProblem>(name, operation, "grid_sample/" + name + ".cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program([name](const Shape& shape, const GridProblem& problem, const Target&, const Emitter& emit) {
        return program(shape, name, problem, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
