#include "loss/ctc.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/occupancy.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/rows.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace ctc_descriptor {
namespace {

// Letters of an operand's dimensions: N, T of steps, C of classes, L of labels, S of states.
std::string_view dimensions_of(std::string_view operand) {
  if (operand == "x" || operand == "dx") return "NTC";
  if (operand == "prefixes") return "NTS";
  return operand == "targets" ? "NL" : "N";
}

struct Shape {
  int threads;
};

// Two numbers of each state.
int64_t row_bytes(const CtcLayer& layer) {
  return 2 * layer.states() * 4;
}

// States that the registers of a thread hold at a time; rows in the workspace have longer addresses.
int most_states(const CtcBlockShape& shape) {
  return (shape.threads > 512 ? 4 : 8) / (shape.shared != 0 ? 1 : 2);
}

bool takes_one_pass(const CtcBlockShape& shape, const CtcLayer& layer) {
  return int64_t{shape.threads} * shape.states >= layer.states();
}

Program program(const Shape& shape, const std::string& name, const CtcLayer& layer, const Emitter& emit) {
  Prelude prelude = ctc_prelude(layer);
  prelude.constant("THREADS", shape.threads);
  Launch launch = ctc_launch(layer, name, shape.threads, {{0, layer.images() * row_bytes(layer)}});
  launch.grid[0] = blocks_for(1, layer.images(), layer.dynamic_batch, shape.threads);
  return program_of(emit.source(prelude), launch);
}

// A thread waits for each score, and for each state of the step before.
Estimate predict(const Shape& shape, const CtcLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto images = static_cast<double>(layer.images()), steps = static_cast<double>(layer.steps());
  const double of_step = 3 * static_cast<double>(layer.classes()) + 8 * static_cast<double>(layer.states());
  StreamingWork work;
  work.dram_bytes = layer.bytes();
  work.cache_bytes = images * steps * of_step * 32;
  work.threads = images;
  work.instructions_per_thread = 100 + steps * of_step * 40;
  work.blocks = std::max(1.0, images / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = size_of(layer.x.dtype);
  return streaming_estimate(work, target.arch, device);
}

// A block goes through the steps, one after the other. For each it waits for sums of the states of the step before, for
// the maximum of its warps, and for scores that no one asked for a step ahead. Figures are those of the machine-code
// clock.
Estimate predict_blocks(const CtcBlockShape& shape, const CtcLayer& layer, double passes, const Target& target,
                        const DeviceFigures& device) {
  const auto images = static_cast<double>(layer.images()), steps = static_cast<double>(layer.steps());
  const auto rounds = static_cast<double>(ceil_div(layer.states(), int64_t{shape.threads} * shape.states));
  const double warps = shape.threads / 32.0, of_states = shape.states * (100 + 15 * warps);
  const double of_scores = takes_one_pass(shape, layer) ? 0 : 2500, of_rows = shape.shared != 0 ? 0 : 100;
  const double clocks = 600 + 25 * warps + rounds * (of_scores + of_rows + of_states);
  const double resident =
      device.sms * resident_blocks({.threads = static_cast<double>(shape.threads),
                                    .registers = 32.0 + 8 * shape.states,
                                    .shared_bytes = static_cast<double>(shared_row_bytes(shape, layer))},
                                   target.arch);
  const double turns = std::ceil(images / std::max(1.0, resident));
  StreamingWork work;
  work.dram_bytes = passes * layer.bytes();
  work.threads = images * steps * 32;
  work.instructions_per_thread = 60 + static_cast<double>(layer.classes()) / 32 * 40;
  work.blocks = std::max(1.0, images * steps / 4);
  work.threads_per_block = ctc_row_threads;
  work.bytes_in_flight_per_thread = size_of(layer.x.dtype);
  Estimate estimate = streaming_estimate(work, target.arch, device);
  estimate.seconds += turns * steps * clocks / device.clock_hz;
  return estimate;
}

// The least number of states that makes one pass; the most, where none does.
bool takes_few_states(const CtcBlockShape& shape, const CtcLayer& layer, const Target&) {
  const int64_t states = layer.states(), threads = shape.threads;
  if (!takes_one_pass(shape, layer)) return shape.states == most_states(shape);
  return shape.states == 1 || threads * shape.states / 2 < states;
}

// Few kernels for all sizes: the estimates choose by the number of states.
bool has_open_kernel(const CtcBlockShape& shape, const CtcLayer& layer, const Target& target) {
  return shape.shared != 0 && takes_few_states(shape, layer, target) &&
         (shape.threads == 128 || (shape.threads == 512 && shape.states > 1));
}

}  // namespace
}  // namespace ctc_descriptor

CtcLayer CtcLayer::of(const Request& request) {
  CtcLayer layer;
  if (request.operation == "ctc_loss_forward") {
    static_cast<CtcLoss&>(layer) = CtcLossForward::of(request);
  } else {
    static_cast<CtcLoss&>(layer) = CtcLossBackward::of(request);
  }
  layer.operands = layer_operands(request, ctc_descriptor::dimensions_of);
  return layer;
}

Prelude ctc_prelude(const CtcLayer& layer) {
  Prelude prelude;
  add_operands(prelude, layer.operands);
  prelude.extent("STEPS", layer.steps()).extent("LABELS", layer.labels()).extent("CLASSES", layer.classes());
  prelude.constant("BLANK", layer.blank).flag("HAS_SCORES", layer.input == CtcInput::scores);
  prelude.flag("ZEROES_INFINITE", layer.infinite == CtcInfinite::zero);
  add_batch(prelude, layer.images(), layer.dynamic_batch);
  add_blend(prelude, layer.blend);
  return prelude;
}

Launch ctc_launch(const CtcLayer& layer, std::string entry, int threads,
                  const std::vector<WorkspaceArgument>& workspace) {
  Launch launch = launch_of(std::move(entry), threads);
  append_operands(launch, layer.operands);
  for (const WorkspaceArgument& each : workspace) launch.arguments.push_back(each);
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

void add_ctc_block(Prelude& prelude, const CtcBlockShape& shape, const CtcLayer& layer) {
  prelude.constant("THREADS", shape.threads).constant("STATES", shape.states).constant("ROW_THREADS", ctc_row_threads);
  prelude.flag("ONE_PASS", ctc_descriptor::takes_one_pass(shape, layer)).flag("ROWS_IN_SHARED", shape.shared != 0);
}

int64_t step_bytes(const CtcLayer& layer) {
  return layer.input == CtcInput::scores ? layer.images() * layer.steps() * 8 : 0;
}

Count step_blocks(const CtcLayer& layer) {
  return blocks_for(layer.steps(), layer.images(), layer.dynamic_batch, ctc_row_threads / 32);
}

int64_t shared_row_bytes(const CtcBlockShape& shape, const CtcLayer& layer) {
  return shape.shared != 0 ? ctc_descriptor::row_bytes(layer) : 0;
}

int64_t workspace_row_bytes(const CtcBlockShape& shape, const CtcLayer& layer) {
  return shape.shared != 0 ? 0 : layer.images() * ctc_descriptor::row_bytes(layer);
}

Algorithm simple_ctc_loss(const std::string& operation) {
  using namespace ctc_descriptor;
  const std::string name = operation + "_simple";
  return describe<Shape, CtcLayer>(name, operation, "loss/" + name + ".cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program([name](const Shape& shape, const CtcLayer& layer, const Target&, const Emitter& emit) {
        return program(shape, name, layer, emit);
      })
      .estimate(predict);
}

Algorithm ctc_loss_blocks(const std::string& operation, CtcBlockProgram program, double passes) {
  using namespace ctc_descriptor;
  const std::string name = operation + "_block";
  return describe<CtcBlockShape, CtcLayer>(name, operation, "loss/" + name + ".cu")
      .param("THREADS", &CtcBlockShape::threads, {128, 64, 32, 256, 512, 1024})
      .param("STATES", &CtcBlockShape::states, {1, 2, 4, 8})
      .param("SHARED", &CtcBlockShape::shared, {1, 0})
      .rule("registers hold the states of a thread", [](const CtcBlockShape& shape, const CtcLayer&,
                                                        const Target&) { return shape.states <= most_states(shape); })
      .rule("rows of states fit shared memory",
            [](const CtcBlockShape& shape, const CtcLayer& layer, const Target& target) {
              constexpr int64_t others = 1024;
              return shared_row_bytes(shape, layer) + others <= target.arch.shared_per_block;
            })
      .pruning("a thread takes as few states as make one pass", takes_few_states)
      .pruning("all warps have states",
               [](const CtcBlockShape& shape, const CtcLayer& layer, const Target&) {
                 return shape.threads == 32 || shape.threads / 2 < layer.states();
               })
      .opens(has_open_kernel)
      .program(program)
      .estimate([passes](const CtcBlockShape& shape, const CtcLayer& layer, const Target& target,
                         const DeviceFigures& device) { return predict_blocks(shape, layer, passes, target, device); });
}

}  // namespace kiln::descriptor
