// One layer, both ways: Kiln's choice against the best of cuDNN's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_library.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/stream.h"
#include "statistics.h"

namespace kiln::bench {

/// Outcome of one configuration that cuDNN offers.
struct ConfigResult {
  std::string name, heuristic;
  std::string
      outcome;         ///< "timed", "unequal arithmetic", "refused", "failed", "wrong", "too much workspace", "no time"
  std::string detail;  ///< Why.
  double seconds = 0;  ///< Median of the screening laps.
  int64_t workspace_bytes = 0;

  friend bool operator==(const ConfigResult&, const ConfigResult&) = default;
};

/// A row of the table, with everything it was made from.
struct RowResult {
  std::string request;
  std::string status;  ///< "compared", "not comparable", "no cuDNN configuration", "failed"
  std::string reason;  ///< Why it was not compared.
  std::string kiln_variant, kiln_source, cudnn_config;
  int64_t kiln_workspace_bytes = 0, cudnn_workspace_bytes = 0;
  std::vector<ConfigResult> configs;
  std::vector<double> kiln_seconds, cudnn_seconds;  ///< Seconds of pair i, in the order taken.
  std::string start;                                ///< "graph" or "direct"; for both sides the same.
  int64_t sets = 0;                                 ///< Operand sets that the runs went round.
  /// ||y - reference|| / ||reference|| at sampled outputs, and ||kiln - cudnn|| / ||cudnn|| over all of them.
  double kiln_error = 0, cudnn_error = 0, difference = 0;
  double roofline_seconds = 0;
  double wall_seconds = 0;  ///< Spent on this row.

  PairedRatio ratio() const { return paired_ratio(kiln_seconds, cudnn_seconds); }
  friend bool operator==(const RowResult&, const RowResult&) = default;
};

struct ComparisonOptions {
  StopRule stop;
  int64_t workspace_limit = int64_t{4} << 30;  ///< Bytes; of cuDNN's plans. Kiln's follow the Context's own limit.
  double graph_below = 2e-4;                   ///< Runs shorter than this many seconds are replayed as graphs.
  unsigned threads = 0;                        ///< Threads that build cuDNN's plans; 0: as many as the machine has.
};

/// The largest relative error that counts as right, by storage type: f32 1e-4, f16 2e-3, bf16 1e-2.
double error_limit(DType dtype);

/// ||got - expected|| / ||expected||; infinite if anything is not finite.
double relative_error(const std::vector<double>& got, const std::vector<double>& expected);

/// Method: both sides get the same operands in the same layout and permit the same arithmetic (f32 without TF32).
/// Nothing is prepared outside of the timed runs: transforms of operands count on both sides. Everything that cuDNN
/// offers (cudnn_offers()) is built, run, compared with the double-precision reference and screened; the fastest few
/// race; the winner meets Kiln's choice in pairs of laps round rotating operands, first one first, then the other.
class Comparison {
 public:
  /// All must outlive it. `stream` is that of `cudnn`.
  Comparison(Context& kiln, std::shared_ptr<const device::ContextHandle> device, const device::Stream& stream,
             const CudnnHandle& cudnn, const ComparisonOptions& options);

  /// Spends about `seconds` on the row, at least what one lap of everything takes. Faults of either side become the
  /// row's status; only a lost device is thrown (DriverError::is_sticky).
  RowResult run(const Request& request, double seconds);

 private:
  Context& kiln_;
  std::shared_ptr<const device::ContextHandle> device_;
  const device::Stream& stream_;
  const CudnnHandle& cudnn_;
  ComparisonOptions options_;
  std::vector<std::unique_ptr<CudnnHandle>> builders_;  // a handle for each thread: no two threads may use one at once
};

}  // namespace kiln::bench
