#include "deep_sweeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "algorithm_cases.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "variant_check.h"

namespace kiln::testing_support {
namespace {

constexpr const char* every_test = "*";  // GoogleTest's filter, unless it is given one

// "PairwiseMatch" of the suite "PoolConfigs/PairwiseMatch"; nothing for tests that are no sweeps.
std::optional<std::string> kind_of_sweep(const std::string& suite) {
  for (const char* kind : {"PairwiseMatch", "WideIndexMatch"}) {
    if (suite.ends_with(std::string("/") + kind)) return kind;
  }
  return std::nullopt;
}

// The sweep with a parameter as PrintTo(AlgorithmCase) writes it: "pool_simple,pool_nchw: pool_forward x=...".
Sweep sweep_of(const std::string& test, const std::string& kind, const std::string& parameter,
               const Catalogue& catalogue) {
  const size_t colon = parameter.find(": ");
  if (colon == std::string::npos) throw Error(ErrorCode::internal, parameter + " is no case of a sweep");
  Sweep sweep{test, {}, {}};
  std::istringstream algorithms(parameter.substr(0, colon));
  for (std::string algorithm; std::getline(algorithms, algorithm, ',');) {
    sweep.subjects.push_back(subject_of_sweep(kind, algorithm, parameter.substr(colon + 2), catalogue));
    sweep.operation = catalogue.find(algorithm)->operation();
  }
  return sweep;
}

// Records the sweeps that pass.
class PassedSweeps : public testing::EmptyTestEventListener {
 public:
  PassedSweeps(const DeepTests& deep, std::vector<Sweep> sweeps, DeepSubject nvrtc)
      : deep_(deep), nvrtc_(std::move(nvrtc)) {
    for (Sweep& sweep : sweeps) subjects_[sweep.test] = std::move(sweep.subjects);
  }

 private:
  void OnTestEnd(const testing::TestInfo& info) override {
    const auto found = subjects_.find(fmt::format("{}.{}", info.test_suite_name(), info.name()));
    if (found == subjects_.end() || !info.result()->Passed()) return;
    for (const DeepSubject& subject : found->second) deep_.passed(subject);
    deep_.passed(nvrtc_);
  }

  const DeepTests& deep_;
  DeepSubject nvrtc_;
  std::map<std::string, std::vector<DeepSubject>> subjects_;  // by test
};

void prepare(const std::vector<Sweep>& sweeps, const DeepTests& deep, const Target& target) {
  const DeepSubject nvrtc = subject_of_nvrtc(target);
  if (deep.is_deep_run()) {
    testing::UnitTest::GetInstance()->listeners().Append(new PassedSweeps(deep, sweeps, nvrtc));
    return;
  }
  if (GTEST_FLAG_GET(filter) != every_test) return;
  std::optional<std::string> reason = deep.why_due(nvrtc);
  if (!reason) reason = deep.why_all_sweeps_are_due();
  if (reason) {
    std::printf("All %zu sweeps run: %s\n", sweeps.size(), reason->c_str());
    return;
  }
  const std::vector<Sweep> unchanged = unchanged_sweeps(sweeps, deep);
  if (unchanged.empty()) return;
  GTEST_FLAG_SET(filter, filter_without(unchanged));
  std::printf("%zu of %zu sweeps left out: %s\n", unchanged.size(), sweeps.size(), unchanged_since_deep_run);
  testing::Test::RecordProperty("left_out", static_cast<int>(unchanged.size()));  // scripts/test adds them up
}

}  // namespace

DeepSubject subject_of_sweep(const std::string& kind, const std::string& algorithm, const std::string& request,
                             const Catalogue& catalogue) {
  const std::optional<std::string> digest = catalogue.digest(algorithm);
  if (!digest) throw Error(ErrorCode::invalid_argument, "there is no algorithm " + algorithm);
  return {fmt::format("{} {}: {}", kind, algorithm, request), *digest};
}

DeepSubject subject_of_nvrtc(const Target& target) {
  const std::string name = fmt::format("nvrtc {}.{}", target.nvrtc_major, target.nvrtc_minor);
  return {name, digest_of(name)};
}

std::vector<Sweep> sweeps_of(const testing::UnitTest& program, const Catalogue& catalogue) {
  std::vector<Sweep> sweeps;
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    const std::optional<std::string> kind = kind_of_sweep(suite.name());
    for (int j = 0; kind && j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      sweeps.push_back(sweep_of(fmt::format("{}.{}", suite.name(), test.name()), *kind, test.value_param(), catalogue));
    }
  }
  return sweeps;
}

std::vector<Sweep> unchanged_sweeps(const std::vector<Sweep>& sweeps, const DeepTests& deep) {
  const std::set<std::string> changed = deep.changed_operations();
  std::vector<Sweep> unchanged;
  for (const Sweep& sweep : sweeps) {
    if (changed.contains(sweep.operation)) continue;
    if (std::none_of(sweep.subjects.begin(), sweep.subjects.end(),
                     [&](const DeepSubject& subject) { return deep.why_due(subject); })) {
      unchanged.push_back(sweep);
    }
  }
  return unchanged;
}

std::string filter_without(const std::vector<Sweep>& sweeps) {
  std::string filter = every_test;
  for (const Sweep& sweep : sweeps) filter += (filter == every_test ? "-" : ":") + sweep.test;
  return filter;
}

void prepare_sweeps() {
  if (GTEST_FLAG_GET(list_tests)) return;
  const std::vector<Sweep> sweeps = sweeps_of(*testing::UnitTest::GetInstance(), built_in_catalogue());
  if (sweeps.empty()) return;
  try {
    const TestDevice& device = TestDevice::get();
    if (!device.context->driver().is_emulated()) return;  // the list is of the emulated device
    prepare(sweeps, DeepTests::of_project(), device.target);
  } catch (const Error& error) {
    std::printf("All %zu sweeps run: %s\n", sweeps.size(), error.what());
  }
}

}  // namespace kiln::testing_support
