// The CUDA graphs of a batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "kiln/cuda_graph.h"
#include "kiln/model.h"

namespace kiln::models {

/// Where the tensors of a run were, and the graph of such runs once there is one.
struct KnownRun {
  std::vector<const void*> bases;
  std::optional<CudaGraph> graph;
};

/// The last runs that differ in where their tensors are. Whoever brings other memory each time has no graph made: that
/// costs more than the launches that it saves once.
class RunCudaGraphs {
 public:
  /// Null if no run is known that had its tensors at `bases`. Valid until add().
  KnownRun* find(const std::vector<const void*>& bases) {
    const auto found =
        std::find_if(runs_.begin(), runs_.end(), [&](const KnownRun& run) { return run.bases == bases; });
    if (found == runs_.end()) return nullptr;
    std::rotate(runs_.begin(), found, found + 1);
    return &runs_.front();
  }

  /// Takes the place of the run that was found least lately, if there are too many.
  void add(const std::vector<const void*>& bases) {
    if (runs_.size() == ModelGraphs::most) runs_.pop_back();
    runs_.insert(runs_.begin(), KnownRun{bases, std::nullopt});
  }

  size_t count() const {
    return static_cast<size_t>(
        std::count_if(runs_.begin(), runs_.end(), [](const KnownRun& run) { return run.graph.has_value(); }));
  }

 private:
  std::vector<KnownRun> runs_;  // the one that was found or added last in front
};

}  // namespace kiln::models
