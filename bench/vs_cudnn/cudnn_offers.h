// Configurations that cuDNN offers for a request: every one that is known to it, ready to be tried.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comparison_sides.h"
#include "cudnn_graph.h"
#include "kiln/device/context.h"
#include "operands.h"

namespace kiln::bench {

/// Operations in one or more graphs, run one after the other.
struct GraphForm {
  std::string name;  ///< "", "fused", "fused, residual first", "separate", "resample"
  std::vector<Operations> graphs;
};

/// Why cuDNN is not asked for this request; nothing if it is. Both sides must do exactly the same: a fixed batch, no
/// scaling of the output, nothing that cuDNN has no words for.
std::optional<std::string> not_comparable(const Request& request);

/// The forms in which a comparable request can be put to the graph API. Describing needs no device. Throws CudnnError.
///
/// - A convolution alone, and pooling: one operation.
/// - A convolution with an epilogue, `fused`: the stages in the request's order, in one graph.
/// - `fused, residual first`: convolution + residual + bias, then the activation: the pattern for which cuDNN has
///   compiled kernels. Without a residual, y stands for it, times zero.
/// - `separate`, f32 only: the convolution to memory, and a second graph that applies the epilogue in place. With 16
/// bits
///   it would round twice.
std::vector<GraphForm> graph_forms(const std::shared_ptr<const CudnnLibrary>& library, const Request& request);

/// One way of doing it. `outcome` is empty, or says what became of it before it could be tried.
struct CudnnOffer {
  std::string name;       ///< "fused: engine 14 (2=3)", "cudnnPoolingForward"
  std::string heuristic;  ///< "A", "B", "fallback"; empty for calls.
  std::string outcome;    ///< "refused", "unequal arithmetic", or nothing.
  std::string detail;     ///< Why.
  /// Makes the plans, on any thread, with a handle that no other thread uses meanwhile; it must outlive the side. To be
  /// called at most once, before prepare(), which otherwise makes them, and which throws what this met. Empty for
  /// calls.
  std::function<void(const CudnnHandle& handle)> build;
  /// Throws CudnnError, DriverError, WorkspaceTooLarge.
  std::function<std::unique_ptr<CudnnSide>(const std::shared_ptr<const device::ContextHandle>& device,
                                           int64_t workspace_limit, const OperandSets& operands)>
      prepare;
};

/// Everything, in the order of the forms, then calls. `handle` must outlive the offers. Throws CudnnError for faults
/// that are not about a form.
std::vector<CudnnOffer> cudnn_offers(const CudnnHandle& handle, const Request& request);

}  // namespace kiln::bench
