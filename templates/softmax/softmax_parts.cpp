#include "softmax/softmax_parts.h"

#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {

std::optional<std::string> refuse_parts(const SoftmaxRows& softmax, const Target&) {
  if (auto reason = refuse_along_rows(softmax)) return reason;
  if (softmax.length() <= PartsShape::smallest_block) return "the row is too short to be split";
  return std::nullopt;
}

bool part_threads_have_work(const PartsShape& shape, const SoftmaxRows& softmax, const Target&) {
  return static_cast<int64_t>(shape.threads) / 2 * shape.vector * shape.splits < softmax.length();
}

bool has_open_parts(const PartsShape& shape, const SoftmaxRows&, const Target&) {
  return shape.threads == 256 && (shape.vector == 1 || shape.vector == 4) && (shape.splits == 16 || shape.splits == 64);
}

Program parts_program(const char* summary, int64_t bytes, const char* result, const PartsShape& shape,
                      const SoftmaxRows& softmax, const Emitter& emit) {
  Prelude prelude = softmax_prelude(softmax, along_rows(softmax), shape.vector, emit);
  prelude.constant("THREADS", shape.threads).constant("SPLITS", shape.splits);

  const WorkspaceArgument parts{0, softmax.count() * shape.splits * bytes};
  Launch first = launch_of(summary, shape.threads);
  first.grid[0] = blocks_for_rows(softmax, 1);
  first.grid[0].fixed *= shape.splits;
  first.grid[0].per_n *= shape.splits;
  Launch second = first;
  second.entry = result;
  for (size_t i = 0; i < softmax.inputs(); ++i) append(first, {OperandArgument{softmax.operands[i].name}});
  append(first, {UserArgument{}, parts});
  for (const Operand& operand : softmax.operands) append(second, {OperandArgument{operand.name}});
  append(second, {Scalar::alpha, Scalar::beta, UserArgument{}, parts});
  return Program{{emit.source(prelude)}, {first, second}};
}

StreamingWork parts_work(const PartsShape& shape, const SoftmaxRows& softmax, const DeviceFigures& device) {
  const auto elements = static_cast<double>(softmax.elements());
  const double bytes = softmax.input_bytes();
  const auto moved = element_bytes(softmax, along_rows(softmax), shape.vector);

  StreamingWork work;
  const bool rereads_memory = elements * bytes > static_cast<double>(device.l2_bytes) / 2;
  work.dram_bytes = softmax.compulsory_bytes() + (rereads_memory ? elements * bytes : 0);
  work.cache_bytes = elements * (2 * moved.read + moved.written);
  work.blocks = static_cast<double>(softmax.count()) * shape.splits;
  work.threads = work.blocks * shape.threads;
  work.threads_per_block = shape.threads;
  const double per_thread = static_cast<double>(softmax.length()) / (shape.threads * shape.splits);
  work.bytes_in_flight_per_thread = std::min(per_thread, 4.0 * shape.vector) * bytes;
  work.launches = 2;
  return work;
}

double steps_of(const PartsShape& shape, const SoftmaxRows& softmax) {
  return std::ceil(static_cast<double>(softmax.length()) /
                   (static_cast<double>(shape.threads) * shape.vector * shape.splits));
}

}  // namespace kiln::descriptor
