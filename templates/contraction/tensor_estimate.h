// Predicted time of kernels on tensor cores.
#pragma once

#include <optional>

#include "contraction/block_estimate.h"
#include "contraction/tensor_tiling.h"

namespace kiln::descriptor {

/// Results that a block stores: elements of c, or parts of sums in f32.
enum class Results { finished, parts };

/// Elements that a block brings and stores.
struct TensorTraffic {
  Results results;
  std::optional<double> a_elements;  ///< Elements of a for a chunk, where what comes for one serves others.

  // Implicit: most are results alone.
  TensorTraffic(Results stored, std::optional<double> brought = std::nullopt) : results(stored), a_elements(brought) {}
};

/// The work of one block that multiplies `of_tile` chunks of each of its tiles, of the `blocks` of a launch. Its
/// latency_clocks hold what its stages do not hide of the loads' latency; its stall_clocks are those before and after
/// the chunks.
BlockWork tensor_block_work(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch,
                            const DeviceFigures& device, double of_tile, double blocks, const TensorTraffic& traffic);

/// The time of a launch of such blocks. Each SM works off its share of them in rounds of as many as fit; a round lasts
/// as long as its scarcest resource (tensor cores, shared memory, L2, device memory, issue slots), or as the chunks of
/// one block alone. What a block waits for before and after its chunks is hidden by those beside it.
Estimate tensor_estimate(const GridWork& work, const Arch& arch, const DeviceFigures& device);

/// `device` with the rate of L2 that tensor cores get, where nobody has measured it.
DeviceFigures with_rate_of_l2(const DeviceFigures& device, const Arch& arch);

}  // namespace kiln::descriptor
