// Model: a whole network from an ONNX file, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/cxx20.h"
#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/plan.h"

namespace kiln {

/// The order of dimensions in memory of what convolutions read and write.
enum class ModelLayout {
  automatic,       ///< For each part of the model what costs least by Kiln's own estimates (predicted_seconds()).
  channels_first,  ///< Logical order: NCW, NCHW, NCDHW.
  channels_last,   ///< NWC, NHWC, NDHWC.
};

/// Layout named "auto", "nchw" or "nhwc"; nothing for any other word.
std::optional<ModelLayout> parse_model_layout(std::string_view word);

struct ModelOptions {
  /// The batch: the first extent of inputs, where the model leaves it open or they all have the same. Without it, the
  /// model's own, and 1 where it is open.
  std::optional<int64_t> batch = std::nullopt;
  /// Storage of floating-point numbers. Without it, as the model has them; double is stored as f32.
  std::optional<DType> dtype = std::nullopt;
  /// One compiled kernel for every batch of a power-of-two bucket, wherever an operation has that: another batch of the
  /// bucket then compiles nothing.
  bool dynamic_batch = false;
  /// Normalisations go into filters, and what follows a call into its epilogue, where that changes only roundings.
  bool fuse = true;
  /// Layout of intermediate values and of filters; inputs and outputs are in logical order. It has no say over results.
  ModelLayout layout = ModelLayout::automatic;
  /// Permissions and demands of convolutions, products and reductions.
  Arithmetic arithmetic = {};
  /// Runs whose tensors lie where they lay before are launched as one CUDA graph, not kernel by kernel (ModelGraphs).
  bool use_graph = true;
};

/// An input or output of a model.
struct ModelTensor {
  std::string name;
  std::string type;          ///< In the file: "float", "int64", "bool".
  DType dtype = DType::f32;  ///< On the device: integers of 16 to 64 bits are i32, booleans u8 (0 and 1).
  std::vector<int64_t> extents;
};

/// A call that a run makes.
struct ModelStep {
  Request request;
  std::string variant;             ///< As Plan::variant().
  std::string source;              ///< As Plan::source().
  std::vector<std::string> nodes;  ///< Nodes of the model; none for a copy between layouts.
};

/// Device memory of a Model, in bytes.
struct ModelMemory {
  int64_t weights = 0;  ///< Constants, what is computed from them once, and prepared filters, of all batches so far.
  int64_t arena = 0;    ///< Intermediate results of runs, workspaces too: values that do not live at one time share
                        ///< memory.
  int64_t least_arena = 0;  ///< The most that is needed at one step: no plan of the same steps has less.
  int64_t unshared = 0;     ///< Size of the arena if nothing shared memory.
};

/// The CUDA graphs of a Model. A run whose tensors lie where those of one of the last runs did (as many sets of
/// addresses as ModelGraphs::most are known, for each batch) is captured once and launched as one CUDA graph from then
/// on. Other runs, and runs that a caller captures into a CUDA graph of their own, launch kernels one by one.
struct ModelGraphs {
  static constexpr size_t most = 4;  ///< For each batch. The one that was not used for longest is given up for another.
  size_t kept = 0;                   ///< Graphs of all batches.
  /// The reason why no run becomes a CUDA graph: ModelOptions::use_graph, recorded calls, or the driver's message when
  /// it made none. Empty if runs become CUDA graphs.
  std::string unused_because;
};

/// A model, compiled and loaded, with its weights on the device. Its Context must outlive it, where it is: it must not
/// be moved. A Model that was moved from refuses every call with Error(invalid_argument), until another is assigned to
/// it.
///
/// Runs enqueue work on a stream and return. They share the memory of what is computed in between: the runs of one
/// Model must be ordered, by one stream or otherwise, and calls of run() must not overlap. A run compiles nothing, and
/// allocates nothing but the CUDA graph that its second run with the same tensors becomes (ModelGraphs): it can be
/// captured into a CUDA graph of the caller's, which then has its kernels.
class Model {
 public:
  /// Reads the ONNX model in file `path`, makes the plans of all its calls with the best variants that the Context
  /// knows, and computes what depends on its weights only. Throws Error as read_onnx() and Context::plan() do;
  /// Error(unsupported) naming all nodes that are not covered, with the reasons, before anything is compiled.
  Model(Context& context, const std::string& path, const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// The batch that runs take, and that inputs(), outputs(), steps() and memory() are of.
  int64_t batch() const;
  /// Whether the file leaves the batch open.
  bool has_open_batch() const;
  /// The input whose first extent is the batch then.
  const std::optional<std::string>& batch_input() const;
  /// Makes `batch` that one, as ModelOptions::batch does. State that was made for a batch is kept, and comes back at
  /// once. A new one reads the files again, which must not have been written since, and makes its plans; weights are
  /// shared, but for filters that a plan prepares for a request of its own. If the batch needs more memory in between
  /// than those before, that memory is allocated anew: CUDA graphs that were captured before must not be launched any
  /// more, so set the largest batch first. Throws as the constructor, and leaves the Model as it was.
  void set_batch(int64_t batch);

  const std::vector<ModelTensor>& inputs() const;
  const std::vector<ModelTensor>& outputs() const;
  const std::vector<ModelStep>& steps() const;
  const ModelMemory& memory() const;
  const ModelGraphs& graphs() const;

  /// Enqueues one inference. `inputs` and `outputs`: every input and output of the model by its name, in any order,
  /// with the dtype and extents of inputs() and outputs(), in logical order without gaps, 16-byte aligned. Outputs
  /// must share no memory with other tensors. Throws Error(invalid_argument), nothing enqueued, for what is missing,
  /// given twice, unknown, different, of host memory that the device does not reach, beyond the end of its allocation,
  /// or overlaps; the message names the input or output.
  void run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs, Stream stream = nullptr);
  void run(std::initializer_list<NamedTensor> inputs, std::initializer_list<NamedTensor> outputs,
           Stream stream = nullptr) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), stream);
  }

 private:
  struct Impl;
  Impl& present() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln
