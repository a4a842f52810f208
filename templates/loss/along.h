// The kernels of cross entropy and of its gradient whose threads share a row: what their descriptors have in common.
#pragma once

#include <string>
#include <utility>

#include "loss/cross_entropy_rows.h"

namespace kiln::descriptor {

struct AlongShape {
  int threads;
  int lanes;   // threads a row
  int vector;  // elements an access
};

/// Vectors that a thread takes of a row.
int64_t steps_of(const AlongShape& shape, const CrossEntropyRows& rows);

// Rules: what their names in along_cross_entropy() say.
bool along_aligned(const AlongShape& shape, const CrossEntropyRows& rows, const Target& target);
bool along_fills_blocks(const AlongShape& shape, const CrossEntropyRows& rows, const Target& target);
bool along_lanes_have_work(const AlongShape& shape, const CrossEntropyRows& rows, const Target& target);

/// The algorithm `name` of loss/NAME.cu with its parameters; program and estimate are the caller's to say. `Parameters`
/// derives from AlongShape.
template <class Parameters>
Describe<Parameters, CrossEntropyRows> along_cross_entropy(const std::string& name, const std::string& operation) {
  return describe<Parameters, CrossEntropyRows>(name, operation, "loss/" + name + ".cu")
      .takes_prologue()
      .param("LANES", &Parameters::lanes, {32, 256, 8, 128, 512, 1024, 64, 16, 4, 2, 1})
      .param("VECTOR", &Parameters::vector, {4, 8, 2, 1})
      .param("THREADS", &Parameters::threads, {256, 128, 512, 1024, 64})
      .rule("row length, alignment and VECTOR agree", along_aligned)
      .rule("a row has lanes of a warp or all of a block", along_fills_blocks)
      .rule("at least half of the lanes have work", along_lanes_have_work)
      .applies([](const CrossEntropyRows& rows, const Target&) { return refuse_along_rows(rows); });
}

/// cross_entropy_prelude() with THREADS and LANES.
Prelude along_prelude(const AlongShape& shape, const CrossEntropyRows& rows);
Program along_program(const std::string& name, const AlongShape& shape, const CrossEntropyRows& rows, Source source);

/// Blocks and their traffic where x is read once. Instructions and bytes in flight are the kernel's own to say.
StreamingWork along_work(const AlongShape& shape, const CrossEntropyRows& rows);

}  // namespace kiln::descriptor
