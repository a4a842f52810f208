// ONNX models.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "kiln/graph/optimise.h"
#include "kiln/graph/schedule.h"
#include "schedule_check.h"

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

/// Its graph, what passes make of it, and what would run. The size of the input decides, so that a replay does the
/// same.
std::string run(const MemoryFile& file, std::string_view input) {
  file.set(input);
  try {
    OnnxGraph model = read_onnx(file.path());
    if (input.size() % 3 == 0) graph::optimise(model.graph, [](const Request&) { return 1.0; });
    check(model.inputs.size() == model.graph.inputs().size(), "every input of the graph has a name");
    check(model.outputs.size() == model.graph.outputs().size(), "every output of the graph has a name");
    const graph::Schedule made = graph::schedule(model.graph, {.dynamic_batch = input.size() % 5 == 0});
    check_schedule(made);
    return model.uncovered.empty() ? "covered" : model.uncovered.front().reason;
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
