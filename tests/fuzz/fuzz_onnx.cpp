// ONNX models.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "kiln/frontends/onnx_graph.h"
#include "kiln/graph/passes.h"
#include "kiln/graph/schedule.h"

namespace kiln::fuzz {
namespace {

/// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("model", 0)) {
    if (descriptor_ < 0) {
      std::perror("memfd_create");
      std::exit(2);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void set(std::string_view bytes) const {
    const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                         ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    check(written, "the input can be written to memory");
  }

 private:
  int descriptor_;
};

/// As a whole model: its graph, what passes make of it, and what would run.
std::string run_whole(const MemoryFile& file, std::string_view input) {
  OnnxGraph model = read_onnx_graph(file.path());
  if (input.size() % 3 == 0) graph::optimise(model.graph, [](const Request&) { return 1.0; });
  const graph::Schedule made = graph::schedule(model.graph, {.dynamic_batch = input.size() % 5 == 0});
  for (const graph::Step& step : made.steps) {
    check(step.arguments.size() == step.request.operands.size(), "every operand lies somewhere");
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const graph::Buffer& buffer = made.buffers.at(step.arguments[i].buffer);
      const Request request = step.batch < 0 ? step.request : step.request.with_batch(step.batch);
      const TensorSpec& spec = request.operands[i].spec;
      check(step.arguments[i].offset + spec.span() * size_of(spec.dtype) <= buffer.bytes, "an operand is inside");
    }
  }
  return model.uncovered.empty() ? "whole" : model.uncovered.front().reason;
}

std::string run(const MemoryFile& file, std::string_view input) {
  file.set(input);
  OnnxOptions options;
  options.dynamic_batch = input.size() % 2 == 1;  // so that the input decides, and a replay does the same
  if (input.size() % 3 == 0) options.order = MemoryOrder::nhwc;
  options.fuse = input.size() % 5 != 0;
  try {
    if (input.size() % 7 < 4) return run_whole(file, input);
    const ModelListing listing = read_onnx(file.path(), options);
    for (const ModelLayer& layer : listing.layers) {
      check(Request::parse(layer.request.key()) == layer.request, "a layer's request comes back from its key");
      check(layer.count > 0, "a listed layer occurs");
    }
    return listing.uncovered.empty() ? "covered" : listing.uncovered.front().reason;
  } catch (const Error& error) {
    check(error.code() != ErrorCode::internal, error.what());
    return error.what();
  }
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  const kiln::fuzz::MemoryFile file;
  return kiln::fuzz::fuzz_main(argc, argv,
                               {.name = "onnx",
                                .run = [&](std::string_view input) { return kiln::fuzz::run(file, input); },
                                .dictionary = {"Conv",
                                               "MaxPool",
                                               "AveragePool",
                                               "GlobalAveragePool",
                                               "Softmax",
                                               "LogSoftmax",
                                               "Relu",
                                               "Clip",
                                               "Add",
                                               "BatchNormalization",
                                               "Sigmoid",
                                               "Where",
                                               "Max",
                                               "ReduceMean",
                                               "Gemm",
                                               "MatMul",
                                               "transB",
                                               "ArgMax",
                                               "Transpose",
                                               "Slice",
                                               "Split",
                                               "Concat",
                                               "Pad",
                                               "Expand",
                                               "Cast",
                                               "MaxUnpool",
                                               "Tile",
                                               "DepthToSpace",
                                               "LayerNormalization",
                                               "ConstantOfShape",
                                               "Erf",
                                               "axes",
                                               "perm",
                                               "keepdims",
                                               "Reshape",
                                               "Flatten",
                                               "Constant",
                                               "pads",
                                               "strides",
                                               "dilations",
                                               "group",
                                               "auto_pad",
                                               "SAME_UPPER",
                                               "VALID",
                                               "kernel_shape",
                                               "ceil_mode",
                                               "axis",
                                               "count_include_pad",
                                               std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10),
                                               std::string("\x80\x80\x80\x80\x08", 5)}});
}
