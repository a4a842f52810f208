// Runs algorithms of the catalogue on requests and compares them with the reference: what the tests of pooling and
// softmax share.
#pragma once

#include <gtest/gtest.h>

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/catalogue.h"

namespace kiln::testing_support {

/// Kiln's algorithms with the built-in templates.
const Catalogue& built_in_catalogue();

/// A compute capability with the NVRTC of the test device.
Target target_of(int major, int minor);

/// One request, and every algorithm that must be able to serve it, in the order of the catalogue.
struct AlgorithmCase {
  std::string name;  ///< Letters and digits: part of the test's name.
  std::string request;
  std::vector<std::string> served_by;
};
std::string case_name(const testing::TestParamInfo<AlgorithmCase>& info);
void PrintTo(const AlgorithmCase& algorithm_case, std::ostream* out);

/// Expects that exactly the algorithms `served_by` serve the request, and that the default configuration of each
/// matches the reference.
void expect_defaults_match(const AlgorithmCase& algorithm_case, std::optional<Target> target = std::nullopt);

/// As expect_defaults_match(), by some of the algorithms that serve the request alone: `served_by` names them.
void expect_some_defaults_match(const AlgorithmCase& algorithm_case);

/// Expects that a pairwise cover of the algorithm's legal configurations matches the reference. The first cover of an
/// algorithm goes through ptxas as well.
void expect_pairwise_match(const std::string& algorithm, std::string_view request);

/// Expects that the default configuration of each of `algorithms` matches the reference when its offsets are made
/// 64-bit. The request's own offsets must fit 32 bits: memory beyond that is more than a test can have.
void expect_wide_index_matches(const std::vector<std::string>& algorithms, std::string_view request);

}  // namespace kiln::testing_support
