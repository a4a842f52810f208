// Central differences of a reference, for the tests of gradients.
#pragma once

#include <string>
#include <vector>

#include "call.h"

namespace kiln::reference {

/// How the sum of `weights` times results(call) changes with element `i` of `operand`, by moving that a little either
/// way. The element stays exact in f32 if it is a multiple of 2^-23 below 1.
template <class Results>
double central_difference(const Call& call, const std::string& operand, size_t i, const std::vector<double>& weights,
                          const Results& results) {
  constexpr double step = 0x1p-10;
  const auto moved = [&](double by) {
    Call other = call;
    std::vector<double> values = read_all(call.request.at(operand), call.memory.at(operand));
    values[i] += by;
    const std::vector<double> y = results(other.set(operand, values));
    double sum = 0;
    for (size_t j = 0; j < y.size(); ++j) sum += weights[j] * y[j];
    return sum;
  };
  return (moved(step) - moved(-step)) / (2 * step);
}

}  // namespace kiln::reference
