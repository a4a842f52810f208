// The inputs of an ONNX model: extents that its file fixes or leaves open, and what a caller's extents make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/generator/dtype.h"
#include "kiln/graph/graph.h"

namespace kiln {

/// "1x3x224x224"; "one element without dimensions" where there are none.
std::string text_of_extents(const graph::Extents& extents);

/// An extent of an input as the file declares it.
struct OnnxExtent {
  std::optional<int64_t> fixed;  ///< Nothing: the file leaves it open.
  std::string symbol;            ///< Name of an open extent; may be empty.
  bool is_batch = false;         ///< Follows the batch: open or not, it may be changed.
};

/// An input as the file declares it.
struct OnnxInput {
  std::string name;
  int32_t element_type = 0;  ///< As ONNX numbers element types.
  std::string type;          ///< As ONNX writes it: "float", "int64", "bool".
  DType dtype = DType::f32;
  bool has_rank = true;  ///< Whether the file says how many extents the input has.
  std::vector<OnnxExtent> extents;
};

/// The inputs of a model with their extents, after a caller's choice.
struct ResolvedInputs {
  std::vector<graph::Extents> extents;     ///< One for each input, in the order of OnnxInputs::all().
  int64_t batch = 1;                       ///< The first extent of the inputs that follow the batch.
  std::map<std::string, int64_t> symbols;  ///< Open extents by their names, where they have one value.
};

class OnnxInputs {
 public:
  OnnxInputs() = default;
  /// `batch`: the batch that the file itself has; nothing where it leaves that open.
  OnnxInputs(std::vector<OnnxInput> inputs, std::optional<int64_t> batch) : inputs_(std::move(inputs)), batch_(batch) {}

  const std::vector<OnnxInput>& all() const { return inputs_; }
  /// The batch of the file; nothing where it leaves that open.
  std::optional<int64_t> batch() const { return batch_; }
  /// Whether the file leaves the first extent of an input open.
  bool has_open_batch() const;
  /// Whether it leaves others open, which have no default.
  bool has_open_extents() const;

  /// Extents of all inputs. `batch`: that of inputs that follow it; without it, theirs in `shapes`, else the file's,
  /// and 1 where that is open. `shapes`: extents of some or all inputs. Inputs without any take open extents from
  /// others with extents of the same name. Throws Error(invalid_argument) for an unknown input, a rank or an extent
  /// that the file fixes otherwise, extents below 0, a `batch` below 1, and open extents that nothing gives: the
  /// message names them all.
  ResolvedInputs resolve(std::optional<int64_t> batch, const std::map<std::string, graph::Extents>& shapes) const;
  /// `extents`, which resolve() gave, with another batch.
  std::map<std::string, graph::Extents> with_batch(const std::vector<graph::Extents>& extents, int64_t batch) const;

  /// "'x' [1, 3, height, ?]": a name or a question mark for each open extent.
  static std::string text_of(const OnnxInput& input);

 private:
  const OnnxInput& input(const std::string& name) const;

  std::vector<OnnxInput> inputs_;
  std::optional<int64_t> batch_;
};

}  // namespace kiln
