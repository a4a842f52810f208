// Pairwise covering: few configurations in which every pair of parameter values meets that can meet at all.
#pragma once

#include <cstddef>
#include <vector>

#include "kiln/generator/algorithm.h"

namespace kiln::testing_support {

/// A subset of `points` in which any two values of any two parameters stand together if they do so in some point.
/// The smallest of several greedy ones, so about as small as it can be; the first point is in it; depends on nothing
/// but `points`. With one parameter: every value.
std::vector<Config> pairwise_cover(const std::vector<Config>& points);

/// As pairwise_cover(), of all legal points of an algorithm for a request.
std::vector<Config> pairwise_configs(const BoundAlgorithm& algorithm);

}  // namespace kiln::testing_support
