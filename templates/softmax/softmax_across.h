// Kernels of rows across the innermost dimension, of softmax and of its gradient: what their descriptors share.
#pragma once

#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "softmax/softmax_rows.h"

namespace kiln::descriptor {

/// A block takes `inner_lanes` * `vector` neighbouring rows.
struct AcrossShape {
  int inner_lanes;  // threads along the inner dimension
  int axis_lanes;   // threads that share rows
  int vector;       // neighbouring rows a thread
  int keep;         // whether elements stay in registers between the two passes
};

/// Elements that a thread takes of each of its rows.
int64_t steps_of(const AcrossShape& shape, const SoftmaxRows& softmax);

// Rules.
bool across_aligned(const AcrossShape& shape, const SoftmaxRows& softmax, const Target& target);
bool across_block_fits(const AcrossShape& shape, const SoftmaxRows& softmax, const Target& target);
bool across_lanes_have_work(const AcrossShape& shape, const SoftmaxRows& softmax, const Target& target);

/// For opens().
bool across_has_open_kernel(const AcrossShape& shape, const SoftmaxRows& softmax, const Target& target);

/// One launch of `entry`.
Program across_program(const char* entry, const AcrossShape& shape, const SoftmaxRows& softmax, const Emitter& emit);

/// Blocks and their traffic. Instructions, registers and shared memory are the kernel's own to say.
StreamingWork across_work(const AcrossShape& shape, const SoftmaxRows& softmax, const DeviceFigures& device);

}  // namespace kiln::descriptor
