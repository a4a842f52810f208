#include "kiln/generator/operations/local_norm.h"

#include <fmt/format.h>

#include "onnx/attributes.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {

Layer read_lrn(const Source& source) {
  require_inputs(source, 1, 1);
  LocalNormForward norm;
  norm.x = norm.y = source.operand(0);
  if (norm.x.extents.size() < 2) return refused("its input has no channels");
  norm.size = Attributes(source.node).integer("size", 0);
  if (norm.size < 1) fail(source, fmt::format("size is {}, expected at least 1", norm.size));
  if (norm.size > LocalNormForward::most_size) {
    return refused(
        fmt::format("its window has {} channels, and up to {} are covered", norm.size, LocalNormForward::most_size));
  }
  norm.dynamic_batch = source.options.dynamic_batch;
  return asked(norm.request());
}

}  // namespace kiln::onnx_frontend
