#include "sampled_rows.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "kiln/base/error.h"
#include "kiln/tuner/timing.h"

namespace kiln::bench {
namespace {

// Fewer say nothing of noise.
constexpr size_t least_samples = 8;

std::vector<double> samples_of(const std::string& cell, const std::string& where) {
  std::vector<double> samples;
  std::istringstream stream(cell);
  for (double microseconds = 0; stream >> microseconds;) {
    if (!(microseconds > 0)) throw Error(ErrorCode::parse_error, fmt::format("{}: a sample is not above 0", where));
    samples.push_back(microseconds / 1e6);
  }
  if (!stream.eof()) throw Error(ErrorCode::parse_error, fmt::format("{}: '{}' are not samples", where, cell));
  if (samples.size() < least_samples) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: {} samples, expected at least {}", where, samples.size(), least_samples));
  }
  return samples;
}

}  // namespace

std::vector<SampledRow> read_sampled_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  std::string line;
  const auto read = [&] {
    if (!std::getline(file, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  if (!read() || !line.ends_with(",median_ms,samples_us")) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: the last columns must be median_ms and samples_us", path));
  }
  std::vector<SampledRow> rows;
  for (size_t number = 2; read(); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    const size_t last = line.rfind(','), before = line.rfind(',', last == 0 ? 0 : last - 1);
    if (last == std::string::npos || before == std::string::npos || before == last) {
      throw Error(ErrorCode::parse_error, fmt::format("{}: expected parameters, a median and samples", where));
    }
    if (line.substr(before + 1, last - before - 1) == "failed") continue;
    SampledRow row;
    row.name = line.substr(0, before);
    row.samples = samples_of(line.substr(last + 1), where);
    row.median = tuner::summarise(row.samples).median;
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw Error(ErrorCode::parse_error, fmt::format("{} has no samples", path));
  return rows;
}

}  // namespace kiln::bench
