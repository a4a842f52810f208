// The descriptors of the kernels for depthwise convolution on tensor cores, and what they share: lib/bands.cuh.
#pragma once

#include <optional>
#include <string>

#include "contraction/block_estimate.h"
#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Channels whose rows of taps are bands, as lib/bands.cuh has them in a block.
struct BandShape {
  int channels;
  int64_t tap_rows, taps, tap_step;  ///< Rows of taps, taps of each, rows of x from one of these rows to the next.
  int64_t rows, columns, row_step;   ///< Sums of a channel, rows of x from one row of these to the next.
  int warp_rows;                     ///< Rows of sums of a warp.

  int threads() const;
  int64_t steps() const;  ///< Parts of 16 columns that a band is cut into.
  int64_t pairs() const;  ///< Accesses to x for a row of taps and 16 rows of sums.
  int64_t input_rows() const;
  int64_t line_bytes() const;  ///< A row of taps with the zeros beside it.
  int64_t shared_bytes() const;
  /// A thread's: sums, matrices of x, a band and addresses.
  int registers() const;

  /// Whether whole warps make a block that is neither small nor too large.
  bool warps_tile() const;
  /// Whether a thread has enough of them.
  bool registers_suffice(const Arch& arch) const;

  /// The work of a block that adds `times` times what its operands give. To bring these, and to store the sums, comes
  /// on top.
  BlockWork work(double times) const;
  /// How long it multiplies once, if nothing else runs.
  double clocks(const Arch& arch, const Calibration& reached) const;

 private:
  // Tensor instructions of a warp, its accesses to x, and its words of taps, for all rows of taps.
  double products() const;
  double matrices() const;
  double words() const;
};

/// Why a convolution of x with `k` filters of `c_per_group` channels has no bands for its windows; nothing if it has.
std::optional<std::string> band_refusal(const TensorSpec& x, int64_t c_per_group, int64_t k, const SpatialAxes& axes);

/// Channels of one access to `spec`, whose channels number `channels`, where a block has `of_block` of them.
int band_run(const TensorSpec& spec, int64_t channels, int of_block);

/// The kernel NAME of FOLDER/NAME.cu, a convolution or a gradient: one launch for all contractions of a request.
Algorithm depthwise_tensor_convolution(const std::string& template_path, const std::string& operation,
                                       ContractionMaker make);

}  // namespace kiln::descriptor
