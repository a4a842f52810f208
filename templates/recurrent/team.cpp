#include "recurrent/team.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "descriptor/numbers.h"
#include "descriptor/occupancy.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace recurrent_team_descriptor {
namespace {

constexpr int width = 4;  // WIDTH of the template

struct Shape {
  int threads, lanes, units, images, team, keep;
};

int64_t units_of_block(const Shape& shape, const RecurrentLayer& layer) {
  return ceil_div(layer.hidden, shape.team);
}

int64_t rounds(const Shape& shape, const RecurrentLayer& layer) {
  return ceil_div(units_of_block(shape, layer), int64_t{shape.threads} / shape.lanes * shape.units);
}

int64_t pieces(const Shape& shape, const RecurrentLayer& layer) {
  return ceil_div(layer.hidden, int64_t{shape.lanes} * width);
}

// States in shared memory (struct Memory of the templates), and those that a team gives each other.
int64_t states_of_block(const RecurrentLayer& layer) {
  return layer.is_gradient ? 2 * gates_of(layer.cell) + 3 : 5;
}
int64_t states_of_team(const RecurrentLayer& layer) {
  return layer.is_gradient ? 2 * gates_of(layer.cell) : 3;
}

int64_t memory_bytes(const Shape& shape, const RecurrentLayer& layer) {
  return states_of_block(layer) * pieces(shape, layer) * shape.lanes * width * shape.images * 4;
}

// Sums of a thread.
int64_t sums(const Shape& shape, const RecurrentLayer& layer) {
  return int64_t{shape.units} * gates_of(layer.cell) * shape.images;
}

int64_t kept_words(const Shape& shape, const RecurrentLayer& layer) {
  return shape.units * gates_of(layer.cell) * pieces(shape, layer) * width * size_of(layer.r().dtype) / 4;
}

bool keeps_what_fits(const Shape& shape, const RecurrentLayer& layer, const Target& target) {
  if (shape.keep == 0) return true;
  constexpr int others = 44;  // registers of addresses, states and functions
  const int registers = std::min(255, registers_with(shape.threads / 32, target.arch));
  return rounds(shape, layer) == 1 && kept_words(shape, layer) + sums(shape, layer) + others <= registers;
}

bool threads_have_work(const Shape& shape, const RecurrentLayer& layer, const Target&) {
  const bool few_lanes = shape.lanes == 4 || int64_t{shape.lanes} * width < 2 * layer.hidden;
  const int64_t units = int64_t{shape.threads} / shape.lanes * shape.units;
  return few_lanes && (units < 2 * units_of_block(shape, layer) || (shape.threads == 128 && shape.units == 1));
}

// Blocks of few units wait for each other more than they compute.
bool team_has_work(const Shape& shape, const RecurrentLayer& layer, const Target&) {
  return shape.team == 1 || layer.hidden >= 8 * shape.team;
}

// Few kernels for a layer, of the least team whose blocks have a unit for each group: estimates choose by the number of
// images.
bool has_open_kernel(const Shape& shape, const RecurrentLayer& layer, const Target&) {
  const auto units = static_cast<uint64_t>(ceil_div(layer.hidden, int64_t{shape.threads} / shape.lanes));
  const auto team = std::min<uint64_t>(std::bit_ceil(units), 32);
  return shape.threads == 256 && shape.units == 1 && (shape.lanes == 4 || shape.lanes == 16) &&
         (shape.images == 1 || shape.images == 8) && static_cast<uint64_t>(shape.team) == team;
}

// Counters of the teams, and behind them what they give each other: Team of the template.
int64_t counter_bytes(const Shape& shape, const RecurrentLayer& layer) {
  return ceil_div(layer.images, shape.images) * layer.directions * 128;
}
int64_t workspace_bytes(const Shape& shape, const RecurrentLayer& layer) {
  if (shape.team == 1) return 0;
  const int64_t teams = ceil_div(layer.images, shape.images) * layer.directions;
  return counter_bytes(shape, layer) + teams * states_of_team(layer) * shape.images * layer.hidden * 4;
}

Program program(const Shape& shape, const RecurrentLayer& layer, const std::string& entry, const Emitter& emit) {
  Prelude prelude = recurrent_prelude(layer);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes).constant("UNITS", shape.units);
  prelude.constant("IMAGES", shape.images).constant("TEAM", shape.team).flag("KEEP", shape.keep != 0);
  prelude.constant("R_RUN", widest_vector(layer.r(), {2}, width) == width ? width : 1);
  prelude.flag("IS_GRADIENT", layer.is_gradient).constant("MEMORY_BYTES", memory_bytes(shape, layer));
  Launch launch = recurrent_launch(layer, entry, shape.threads, {0, workspace_bytes(shape, layer)});
  launch.grid = {blocks_for(1, layer.images, layer.dynamic_batch, shape.images), Count{shape.team * layer.directions},
                 Count{1}};
  launch.dynamic_shared_bytes = static_cast<unsigned>(memory_bytes(shape, layer));
  if (shape.team == 1) return program_of(emit.source(prelude), launch);
  launch.persistent = true;
  launch.attributes.cooperative = true;
  return Program{{emit.source(prelude)}, {ClearWorkspace{0, counter_bytes(shape, layer)}, launch}};
}

// A step waits for the one before: for two barriers, the sums over lanes, and the functions of the cell.
Estimate predict(const Shape& shape, const RecurrentLayer& layer, const Target& target, const DeviceFigures& device) {
  const auto steps = static_cast<double>(layer.steps), all_rounds = static_cast<double>(rounds(shape, layer));
  const auto of_thread = static_cast<double>(shape.units * gates_of(layer.cell) * pieces(shape, layer) * width);
  // Blocks of a team run at once, or not at all.
  if (shape.team > 1 && shape.team * layer.directions > device.sms)
    return {.seconds = std::numeric_limits<double>::infinity()};
  const auto teams = static_cast<double>(ceil_div(layer.images, shape.images) * layer.directions);
  const double blocks = teams * shape.team;
  const double pairs = std::ceil(static_cast<double>(shape.units * shape.images) / shape.lanes);
  double per_round = of_thread * (shape.images + (layer.r().dtype == DType::f32 ? 0 : 1)) +
                     static_cast<double>(pieces(shape, layer)) * shape.images * 2 +
                     static_cast<double>(sums(shape, layer)) * (2 * std::log2(shape.lanes) + 2) + pairs * 150;
  if (shape.keep == 0) per_round += of_thread * 1.5;
  StreamingWork work;
  work.dram_bytes = layer.bytes();
  if (shape.keep == 0) {
    work.cache_bytes = teams * steps * static_cast<double>(layer.r().elements()) /
                       static_cast<double>(layer.directions) * size_of(layer.r().dtype);
  }
  work.threads = blocks * shape.threads;
  work.instructions_per_thread = steps * (all_rounds * per_round + 120);
  work.blocks = blocks;
  work.threads_per_block = shape.threads;
  work.registers_per_thread =
      44 + static_cast<double>(sums(shape, layer) + (shape.keep != 0 ? kept_words(shape, layer) : 0));
  work.shared_bytes_per_block = static_cast<double>(memory_bytes(shape, layer));
  work.bytes_in_flight_per_thread =
      shape.keep != 0 ? 16 : 16.0 * shape.units * static_cast<double>(gates_of(layer.cell));
  Estimate estimate = streaming_estimate(work, target.arch, device);
  if (shape.team == 1) return estimate;
  // A write, a counter, its news and a read, one after the other through L2.
  constexpr double exchange_seconds = 2e-6;
  const double resident = device.sms * resident_blocks({.threads = work.threads_per_block,
                                                        .registers = work.registers_per_thread,
                                                        .shared_bytes = work.shared_bytes_per_block},
                                                       target.arch);
  const double turns = std::ceil(blocks / std::max(resident, 1.0));
  const bool exchanges_twice = layer.cell == RecurrentCell::gru && layer.reset == RecurrentReset::before;
  estimate.seconds += turns * steps * exchange_seconds * (exchanges_twice ? 2 : 1);
  return estimate;
}

}  // namespace
}  // namespace recurrent_team_descriptor

Algorithm recurrent_teams(const std::string& name, const std::string& operation) {
  using namespace recurrent_team_descriptor;
  return describe<Shape, RecurrentLayer>(name, operation, "recurrent/" + name + ".cu")
      .param("THREADS", &Shape::threads, {256, 512, 1024, 128})
      .param("LANES", &Shape::lanes, {8, 16, 4, 32})
      .param("UNITS", &Shape::units, {1, 2, 4})
      .param("IMAGES", &Shape::images, {1, 2, 4, 8})
      .param("TEAM", &Shape::team, {1, 2, 4, 8, 16, 32})
      .param("KEEP", &Shape::keep, {1, 0})
      .rule("registers hold the weights that are kept", keeps_what_fits)
      .rule("a thread's sums are few",
            [](const Shape& shape, const RecurrentLayer& layer, const Target&) { return sums(shape, layer) <= 64; })
      .rule("states fit shared memory",
            [](const Shape& shape, const RecurrentLayer& layer, const Target& target) {
              return memory_bytes(shape, layer) <= target.arch.shared_per_block;
            })
      .pruning("all threads have work", threads_have_work)
      .pruning("blocks of a team have work", team_has_work)
      .opens(has_open_kernel)
      .program([name](const Shape& shape, const RecurrentLayer& layer, const Target&, const Emitter& emit) {
        return program(shape, layer, name, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
