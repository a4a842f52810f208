#include "recurrent/recurrence.h"

#include <cmath>
#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/rows.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {
namespace {

// Letters of an operand's dimensions: N, T, D and U of what has an element for each unit, G along the rows of r.
std::string_view dimensions_of(std::string_view operand) {
  if (operand == "r") return "DGU";
  if (operand == "r_bias") return "DG";
  if (operand == "peepholes") return "DU";
  if (operand == "lengths") return "N";
  for (const std::string_view of_steps : {"gates", "y", "saved", "dy", "dgates", "dproducts"}) {
    if (operand == of_steps) return "NTDU";
  }
  return "NDU";
}

}  // namespace

RecurrentLayer RecurrentLayer::of(const Request& request) {
  RecurrentLayer layer;
  const auto take = [&](const auto& view) {
    static_cast<Recurrence&>(layer) = view;
    layer.steps = view.steps();
    layer.directions = view.directions();
    layer.hidden = view.hidden();
    layer.blend = view.blend;
    layer.dynamic_batch = view.dynamic_batch;
  };
  layer.is_gradient = request.operation == "recurrent_backward";
  if (layer.is_gradient) {
    take(RecurrentBackward::of(request));
  } else {
    take(RecurrentForward::of(request));
  }
  layer.images = result_of(request).spec.extents[0];
  layer.operands = layer_operands(request, dimensions_of);
  return layer;
}

Prelude recurrent_prelude(const RecurrentLayer& layer) {
  Prelude prelude;
  add_operands(prelude, layer.operands);
  prelude.constant("CELL", static_cast<int64_t>(layer.cell));
  prelude.flag("RESETS_BEFORE", layer.reset == RecurrentReset::before);
  prelude.flag("ORDER_IOFC", layer.order == RecurrentOrder::iofc);
  prelude.flag("IS_REVERSE", layer.direction == RecurrentDirection::reverse);
  prelude.extent("STEPS", layer.steps).constant("DIRECTIONS", layer.directions).constant("HIDDEN", layer.hidden);
  add_batch(prelude, layer.images, layer.dynamic_batch);
  add_blend(prelude, layer.blend);
  return prelude;
}

Launch recurrent_launch(const RecurrentLayer& layer, std::string entry, int threads,
                        const WorkspaceArgument& workspace) {
  Launch launch = launch_of(std::move(entry), threads);
  append_operands(launch, layer.operands);
  append(launch, {workspace, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

Program simple_recurrent_program(const RecurrentLayer& layer, const std::string& entry, int threads,
                                 int64_t floats_per_unit, const Emitter& emit) {
  Prelude prelude = recurrent_prelude(layer);
  prelude.constant("THREADS", threads);
  const int64_t bytes = layer.images * layer.directions * floats_per_unit * layer.hidden * 4;
  Launch launch = recurrent_launch(layer, entry, threads, {0, bytes});
  launch.grid[0] = blocks_for(layer.directions, layer.images, layer.dynamic_batch, 1);
  return program_of(emit.source(prelude), launch);
}

// Neighbouring threads read neighbouring rows of r, of which each access moves a sector, and wait for it.
Estimate simple_recurrent_estimate(const RecurrentLayer& layer, int threads, const Target& target,
                                   const DeviceFigures& device) {
  const auto blocks = static_cast<double>(layer.images * layer.directions), steps = static_cast<double>(layer.steps);
  const auto rows = static_cast<double>(layer.rows()), hidden = static_cast<double>(layer.hidden);
  StreamingWork work;
  work.dram_bytes = layer.bytes();
  work.cache_bytes = blocks * steps * rows * hidden * 32;
  work.threads = blocks * threads;
  work.instructions_per_thread = steps * std::ceil(hidden / threads) * rows * 10;
  work.blocks = blocks;
  work.threads_per_block = threads;
  work.bytes_in_flight_per_thread = size_of(layer.r().dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace kiln::descriptor
