#include "algorithm_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <utility>

#include "before_tests.h"
#include "deep_sweeps.h"
#include "kiln/templates/catalogue.h"
#include "pairwise.h"
#include "variant_check.h"

namespace kiln::testing_support {
namespace {

// Whether no cover of `algorithm` has run before in this program.
bool is_first_of(const std::string& algorithm) {
  static std::set<std::string> seen;
  return seen.insert(algorithm).second;
}

std::string no_device(const Target& target) {
  return fmt::format("no {} among the devices of this driver", target.arch.name());
}

[[maybe_unused]] const bool sweeps_are_prepared = (before_tests().push_back(&prepare_sweeps), true);

}  // namespace

std::string refusal_of(const std::string& algorithm, const std::string& request) {
  const Target& target = TestDevice::get().target;
  return built_in_catalogue().find(algorithm)->on(Request::parse(request), target).refusal().value_or("none");
}

const Catalogue& built_in_catalogue() {
  static const Catalogue catalogue = make_catalogue(embedded_sources());
  return catalogue;
}

Target target_of(int major, int minor) {
  Target target = TestDevice::get().target;
  target.arch = Arch::of(major, minor);
  return target;
}

std::string case_name(const testing::TestParamInfo<AlgorithmCase>& info) {
  return info.param.name;
}

void PrintTo(const AlgorithmCase& algorithm_case, std::ostream* out) {
  *out << fmt::format("{}: {}", fmt::join(algorithm_case.served_by, ","), algorithm_case.request);
}

std::string cover_name(const testing::TestParamInfo<AlgorithmCase>& info) {
  return fmt::format("{}_{}", info.param.served_by.front(), info.index);
}

AlgorithmCase cover(std::string algorithm, std::string request) {
  return {"", std::move(request), {std::move(algorithm)}};
}

std::vector<AlgorithmCase> covers(const std::vector<std::string>& algorithms,
                                  const std::vector<std::string>& requests) {
  std::vector<AlgorithmCase> cases;
  for (const std::string& algorithm : algorithms) {
    for (const std::string& request : requests) cases.push_back(cover(algorithm, request));
  }
  return cases;
}

AlgorithmCase wide(std::vector<std::string> algorithms, std::string request) {
  return {"", std::move(request), std::move(algorithms)};
}

void expect_defaults_match(const Request& request, const std::vector<std::string>& served_by, const Target& target) {
  const Catalogue& catalogue = built_in_catalogue();
  VariantChecker checker(catalogue, request, thorough(), target);
  std::set<std::string> serving;
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    const std::optional<Config> config = algorithm.on(request, target).first_legal();
    if (!config) continue;
    serving.insert(algorithm.name());
    EXPECT_TRUE(checker.matches_reference({algorithm.name(), *config}));
  }
  for (const Algorithm& algorithm : catalogue.open_algorithms()) {
    const std::optional<Config> config = algorithm.on(request, target).first_legal();
    if (!config) continue;
    EXPECT_TRUE(checker.matches_reference({algorithm.name(), *config}));
  }
  for (const std::string& name : served_by) {
    EXPECT_TRUE(serving.contains(name)) << name << " does not serve " << request.key();
  }
}

void expect_defaults_match(const AlgorithmCase& algorithm_case, std::optional<Target> target) {
  const Target generated_for = target.value_or(TestDevice::get().target);
  if (TestDevice::find(generated_for.arch) == nullptr) GTEST_SKIP() << no_device(generated_for);
  expect_defaults_match(Request::parse(algorithm_case.request), algorithm_case.served_by, generated_for);
}

void expect_some_defaults_match(const AlgorithmCase& algorithm_case, std::optional<Target> target) {
  const Target generated_for = target.value_or(TestDevice::get().target);
  if (TestDevice::find(generated_for.arch) == nullptr) GTEST_SKIP() << no_device(generated_for);
  const Catalogue& catalogue = built_in_catalogue();
  const Request request = Request::parse(algorithm_case.request);
  VariantChecker checker(catalogue, request, thorough(), generated_for);
  for (const std::string& name : algorithm_case.served_by) {
    const BoundAlgorithm bound = catalogue.find(name)->on(request, generated_for);
    ASSERT_EQ(bound.refusal(), std::nullopt) << name;
    const std::optional<Config> config = bound.first_legal();
    ASSERT_TRUE(config) << name;
    EXPECT_TRUE(checker.matches_reference({name, *config}));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PairwiseMatch);
TEST_P(PairwiseMatch, TheReference) {
  const Catalogue& catalogue = built_in_catalogue();
  const std::string& algorithm = GetParam().served_by.front();
  const Request request = Request::parse(GetParam().request);
  const Target& target = TestDevice::get().target;
  VariantChecker checker(catalogue, request);
  const std::vector<Config> configs = pairwise_configs(catalogue.find(algorithm)->on(request, target));
  EXPECT_GT(configs.size(), 1u);
  const execution::Products products = is_first_of(algorithm) ? execution::Products::cubin : execution::Products::ptx;
  for (const Config& config : configs) EXPECT_TRUE(checker.matches_reference({algorithm, config}, products));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideIndexMatch);
TEST_P(WideIndexMatch, TheReference) {
  const Catalogue& catalogue = built_in_catalogue();
  const Request request = Request::parse(GetParam().request);
  const Target& target = TestDevice::get().target;
  VariantChecker checker(catalogue, request);
  for (const std::string& algorithm : GetParam().served_by) {
    const BoundAlgorithm bound = catalogue.find(algorithm)->on(request, target);
    const std::optional<Config> config = bound.first_legal();
    ASSERT_TRUE(config);
    const auto with = [&](Offsets offsets) { return bound.program(catalogue.library(), *config, Rules::all, offsets); };
    const Program fitting = with(Offsets::fitting), wide = with(Offsets::of_64_bits);
    for (size_t i = 0; i < fitting.sources.size(); ++i) {
      ASSERT_NE(wide.sources[i].code, fitting.sources[i].code)
          << "source " << i << " had offsets of 64 bits, or none at all";
    }
    EXPECT_TRUE(checker.matches_reference(wide, algorithm + " with 64-bit offsets"));
  }
}

}  // namespace kiln::testing_support
