// Model: a whole network from an ONNX file, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
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

/// Extents of inputs by their names.
using InputShapes = std::map<std::string, std::vector<int64_t>>;

struct ModelOptions {
  /// The batch: the first extent of inputs, where the model leaves it open or they all have the same. Without it, the
  /// model's own, and 1 where it is open.
  std::optional<int64_t> batch = std::nullopt;
  /// Extents of inputs that the file leaves open (Model::set_shapes()). Without them, the model has no sizes until
  /// set_shapes() or a run gives some.
  InputShapes shapes = {};
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
  /// Calls have `batch_invariant` where they can, as with ContextOptions::batch_invariant. Which calls a model makes
  /// may depend on its batch, unless `layout` and `fuse` leave no choice (docs/numerics.md).
  bool batch_invariant = false;
  /// Runs whose tensors lie where they lay before are launched as one CUDA graph, not kernel by kernel (ModelGraphs).
  bool use_graph = true;
  /// Sizes that a Model keeps ready: how many, and for how many bytes of weights that only one of them needs. The size
  /// that was not used for longest is given up for another; the one in use stays, whatever it takes.
  size_t kept_sizes = 32;
  int64_t kept_bytes = int64_t{256} << 20;
};

/// An input or output of a model.
struct ModelTensor {
  std::string name;
  std::string type;              ///< In the file: "float", "int64", "bool".
  DType dtype = DType::f32;      ///< On the device: integers of 16 to 64 bits are i32, booleans u8 (0 and 1).
  std::vector<int64_t> extents;  ///< -1 for an open one, of a model without sizes.
};

/// Cost for the host of making a Model ready for a size.
struct ModelCost {
  double seconds = 0;          ///< In all: reading, optimising and planning, compiles, the upload of weights.
  uint64_t compiled = 0;       ///< Kernels that had to be compiled, because neither bundles nor the store had them.
  double compile_seconds = 0;  ///< Duration of that, summed over threads.
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
  int64_t weights = 0;      ///< Constants, what is computed from them once, and prepared filters, of all sizes kept.
  int64_t arena = 0;        ///< Intermediate results of runs, workspaces too: values that do not live at one time share
                            ///< memory.
  int64_t least_arena = 0;  ///< The most that is needed at one step: no plan of the same steps has less.
  int64_t unshared = 0;     ///< Size of the arena if nothing shared memory.
};

/// The CUDA graphs of a Model. A run whose tensors lie where those of one of the last runs did (as many sets of
/// addresses as ModelGraphs::most are known, for each size) is captured once and launched as one CUDA graph from then
/// on. Other runs, and runs that a caller captures into a CUDA graph of their own, launch kernels one by one.
struct ModelGraphs {
  static constexpr size_t most = 4;  ///< For each size. The one that was not used for longest is given up for another.
  size_t kept = 0;                   ///< Graphs of all sizes.
  /// The reason why no run becomes a CUDA graph: ModelOptions::use_graph, recorded calls, KILN_CHECK_NUMERICS, or the
  /// driver's message when it made none. Empty if runs become CUDA graphs.
  std::string unused_because;
};

/// A model, compiled and loaded, with its weights on the device. Its Context must outlive it, where it is: it must not
/// be moved. A Model that was moved from refuses every call with Error(invalid_argument), until another is assigned to
/// it.
///
/// A size of a model is a set of extents of all its inputs, and what is made ready for them. A file may leave any
/// extents of inputs open: then a Model takes the extents that come. A new size reads the files again, which must not
/// have been written since, makes its plans, and shares the weights with the others. If it needs more memory in between
/// than those before, that memory is allocated anew. CUDA graphs of the caller's that were captured before must not be
/// launched any more then, nor those of a size that was given up (ModelOptions::kept_sizes): set the largest one first.
///
/// With FirstCall::at_once, open kernels serve the steps of a new size, and each step takes its own plan at the first
/// run after that is made (docs/sizes.md). Such a run may allocate what the plan needs, and waits for what it prepares
/// of the weights: let no other stream of the thread be captured meanwhile. A run that is captured itself waits for the
/// plans of all steps, and takes those that need no more memory and prepare nothing.
///
/// Runs enqueue work on a stream and return. They share the memory of what is computed in between: the runs of one
/// Model must be ordered, by one stream or otherwise, and calls must not overlap. A run of a size that is kept compiles
/// nothing (but as above), and allocates nothing but the CUDA graph that its second run with the same tensors becomes
/// (ModelGraphs): it can be captured into a CUDA graph of the caller's, which then has its kernels.
class Model {
 public:
  /// Reads the ONNX model in file `path`. If options and file say all extents of inputs (an open batch is 1), makes the
  /// plans of all its calls with the best variants that the Context knows, and computes what depends on its weights
  /// only; otherwise the model has no sizes yet. Throws Error as read_onnx() and Context::plan() do; Error(unsupported)
  /// naming all nodes that are not covered, with the reasons, before anything is compiled.
  Model(Context& context, const std::string& path, const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// The batch that runs take; 0 of a model without sizes.
  int64_t batch() const;
  /// Whether the file leaves the batch open: the first extent of an input.
  bool has_open_batch() const;
  /// Whether it leaves other extents of inputs open.
  bool has_open_extents() const;
  /// The inputs as the file declares them, -1 for each open extent. An input whose rank is open has no extents.
  const std::vector<ModelTensor>& declared_inputs() const;

  /// Makes the model take inputs of these extents. Inputs that are not named take open extents from others with extents
  /// of the same name in the file; the batch, where nothing says another, is the file's, and 1 where that is open.
  /// Throws as the constructor, Error(invalid_argument) for shapes that the file does not permit or that leave extents
  /// open, and leaves the Model as it was.
  void set_shapes(const InputShapes& shapes);
  /// The same for another batch with the other extents as they are; also where the file fixes a batch, and all inputs
  /// have it.
  void set_batch(int64_t batch);
  /// Sizes that are kept.
  size_t sizes() const;
  /// Cost of the size in use, when it was made; zeros of a model without sizes.
  const ModelCost& cost() const;

  /// Facts of the size in use. Of a model without sizes inputs() are declared_inputs(), and the others are empty.
  const std::vector<ModelTensor>& inputs() const;
  const std::vector<ModelTensor>& outputs() const;
  const std::vector<ModelStep>& steps() const;
  const ModelMemory& memory() const;
  const ModelGraphs& graphs() const;

  /// Enqueues one inference. `inputs` and `outputs`: every input and output of the model by its name, in any order,
  /// with the dtype and extents of inputs() and outputs(), in logical order without gaps, 16-byte aligned. Outputs
  /// must share no memory with other tensors. If the file leaves extents open, inputs of other extents are another
  /// size, as by set_shapes(); within the capture of a stream only one that is kept. Throws Error(invalid_argument),
  /// nothing enqueued, for what is missing, given twice, unknown, different, of host memory that the device does not
  /// reach, beyond the end of its allocation, or overlaps; the message names the input or output.
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
