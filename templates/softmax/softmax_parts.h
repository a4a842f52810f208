// Kernels of few long rows that several blocks share, of softmax and of its gradient: what their descriptors share.
#pragma once

#include <optional>
#include <string>

#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln::descriptor {

/// `splits` blocks of `threads` threads share a row.
struct PartsShape {
  static constexpr int smallest_block = 128;

  int threads;
  int vector;  // elements an access
  int splits;  // blocks a row
};

std::optional<std::string> refuse_parts(const SoftmaxRows& softmax, const Target& target);

// Rules.
bool part_threads_have_work(const PartsShape& shape, const SoftmaxRows& softmax, const Target& target);

/// For opens().
bool has_open_parts(const PartsShape& shape, const SoftmaxRows& softmax, const Target& target);

/// Two launches: `summary` leaves `bytes` of each part in the workspace, and takes the inputs, user and those parts;
/// `result` takes all operands, alpha, beta, user and the parts.
Program parts_program(const char* summary, int64_t bytes, const char* result, const PartsShape& shape,
                      const SoftmaxRows& softmax, const Emitter& emit);

/// Blocks and their traffic. Instructions and registers are the kernel's own to say.
StreamingWork parts_work(const PartsShape& shape, const SoftmaxRows& softmax, const DeviceFigures& device);
/// Vectors that a thread takes of its part.
double steps_of(const PartsShape& shape, const SoftmaxRows& softmax);

}  // namespace kiln::descriptor
