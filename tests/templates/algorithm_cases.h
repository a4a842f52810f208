// Runs algorithms of the catalogue on requests and compares them with the reference: what the tests of kernels share.
#pragma once

#include <gtest/gtest.h>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"

namespace kiln::testing_support {

/// Kiln's algorithms with the built-in templates.
const Catalogue& built_in_catalogue();

/// A compute capability with the NVRTC of the test device.
Target target_of(int major, int minor);

/// Why an algorithm does not serve a request on the test device; "none" where it does.
std::string refusal_of(const std::string& algorithm, const std::string& request);

/// A request, and algorithms that are run on it. As the parameter of a test it is what
/// coverage_test.cpp knows of that test.
struct AlgorithmCase {
  std::string name;  ///< Letters and digits: part of the test's name.
  std::string request;
  std::vector<std::string> served_by;  ///< Others may serve the request too.
};
std::string case_name(const testing::TestParamInfo<AlgorithmCase>& info);
/// "pool_simple,pool_nchw: pool_forward x=...".
void PrintTo(const AlgorithmCase& algorithm_case, std::ostream* out);

/// Expects that at least the algorithms `served_by` serve the request, and that the default configuration of every one
/// that does, and of its open form, matches the reference. The exact lists are those of descriptions.txt.
void expect_defaults_match(const Request& request, const std::vector<std::string>& served_by, const Target& target);
/// The same; on the target of the test device if none is given.
void expect_defaults_match(const AlgorithmCase& algorithm_case, std::optional<Target> target = std::nullopt);

/// As expect_defaults_match(), for the algorithms `served_by` alone.
void expect_some_defaults_match(const AlgorithmCase& algorithm_case, std::optional<Target> target = std::nullopt);

/// Expects that a pairwise cover of the algorithm's legal configurations matches the reference. The first cover of an
/// algorithm in a program goes through ptxas as well.
class PairwiseMatch : public testing::TestWithParam<AlgorithmCase> {};
AlgorithmCase cover(std::string algorithm, std::string request);
/// Covers of each of the algorithms on each of the requests.
std::vector<AlgorithmCase> covers(const std::vector<std::string>& algorithms, const std::vector<std::string>& requests);

/// Expects that the default configuration of each of the algorithms matches the reference when its offsets are made
/// 64-bit. The request's own offsets must fit 32 bits: memory beyond that is more than a test can have.
class WideIndexMatch : public testing::TestWithParam<AlgorithmCase> {};
AlgorithmCase wide(std::vector<std::string> algorithms, std::string request);

/// The name of a cover() or wide(): its first algorithm, and a number.
std::string cover_name(const testing::TestParamInfo<AlgorithmCase>& info);

}  // namespace kiln::testing_support
