// Sweeps over kernels as deep tests (docs/testing.md): a program leaves out those whose algorithms have not changed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deep_tests.h"
#include "kiln/generator/catalogue.h"

namespace kiln::testing_support {

/// A case of PairwiseMatch or WideIndexMatch.
struct Sweep {
  std::string test;                   ///< "PoolConfigs/PairwiseMatch.TheReference/pool_simple_0".
  std::vector<DeepSubject> subjects;  ///< One for each of its algorithms.
  std::string operation;              ///< Operation of these.
};

/// The subject of such a case and one algorithm: its name says the kind of sweep and the request, its digest is the
/// algorithm's. Throws Error(invalid_argument) if the catalogue does not have it.
DeepSubject subject_of_sweep(const std::string& kind, const std::string& algorithm, const std::string& request,
                             const Catalogue& catalogue);

/// The sweeps that GoogleTest knows in this program.
std::vector<Sweep> sweeps_of(const testing::UnitTest& program, const Catalogue& catalogue);

/// The elements of `sweeps` without a subject that is due, of operations that have not changed.
std::vector<Sweep> unchanged_sweeps(const std::vector<Sweep>& sweeps, const DeepTests& deep);

/// The version of NVRTC, which makes the code that sweeps run.
DeepSubject subject_of_nvrtc(const Target& target);

/// GoogleTest's filter for all tests but these.
std::string filter_without(const std::vector<Sweep>& sweeps);

/// Before the tests of a program: leaves out its unchanged sweeps and says how many, unless the program was given a
/// filter, or runs on a real device. In a deep run it sees to it that sweeps which pass are recorded.
void prepare_sweeps();

}  // namespace kiln::testing_support
