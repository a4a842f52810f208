// Tables of times that others have measured, with all samples of each configuration in the order taken.
#pragma once

#include <string>
#include <vector>

namespace kiln::bench {

struct SampledRow {
  std::string name;             ///< Its parameters, as they stand in the table.
  std::vector<double> samples;  ///< Seconds, in the order taken.
  double median = 0;            ///< Median of all samples.
};

/// The rows of a file of comma-separated values that have samples: its last two columns are `median_ms` and
/// `samples_us`, the samples parted by spaces; `failed` stands where a configuration did not run. Throws
/// Error(io_error), Error(parse_error).
std::vector<SampledRow> read_sampled_rows(const std::string& path);

}  // namespace kiln::bench
