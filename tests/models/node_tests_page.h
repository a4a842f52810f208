// The page of docs/ that says what became of ONNX's node tests: written from their outcomes, and read to compare.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "node_tests.h"

namespace kiln::test {

/// Outcomes in the order of the tests.
std::string page_of(const std::vector<NodeTest>& tests, const std::vector<Outcome>& outcomes);

/// The reasons that a page gives, by the names of the tests that were refused.
std::map<std::string, std::string> refusals_on(const std::string& page);

}  // namespace kiln::test
