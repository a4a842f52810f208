// Prints what all algorithms make of requests: what a change that is to leave the kernels alone must leave as it is.
// `scripts/same-programs` compares the lists of two revisions.
#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/catalogue.h"
#include "request_suites.h"

namespace kiln::testing_support {
namespace {

std::vector<Request> requests_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::vector<Request> requests;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    try {
      requests.push_back(Request::parse(line));
    } catch (const Error& error) {
      throw std::runtime_error(fmt::format("{}: {}: {}", path, line, error.what()));
    }
  }
  return requests;
}

// The default, which is the first of the legal points, and the first and last of them with each value of each
// parameter.
class Corners {
 public:
  void see(const Config& config) {
    ++legal_;
    for (const auto& value : config.values()) {
      const auto [place, is_new] = of_value_.try_emplace(value, config, config);
      if (!is_new) place->second.second = config;
    }
    if (config.values().empty()) of_value_.try_emplace({"", 0}, config, config);
  }

  int64_t legal() const { return legal_; }
  std::set<Config> found() const {
    std::set<Config> all;
    for (const auto& [value, ends] : of_value_) all.insert({ends.first, ends.second});
    return all;
  }

 private:
  int64_t legal_ = 0;
  std::map<std::pair<std::string, int64_t>, std::pair<Config, Config>> of_value_;
};

// The devices are not real: an estimate is a function of their figures.
DeviceFigures figures_of(const Arch& arch) {
  return arch.at_least(8, 0) ? DeviceFigures{132, 1.7e9, 4.8e12, 50 << 20} : DeviceFigures{40, 1.5e9, 3.2e11, 4 << 20};
}

std::string made_of(const Algorithm& algorithm, const Request& request, const Target& target) {
  const BoundAlgorithm bound = algorithm.on(request, target);
  if (const auto refusal = bound.refusal()) return "refused: " + *refusal;
  Corners corners;
  bound.for_each_legal([&corners](const Config& config) {
    corners.see(config);
    return true;
  });
  Digest programs, estimates;
  for (const Config& config : corners.found()) {
    const Program program = bound.program(built_in_catalogue().library(), config);
    programs.add(config.print()).add(program.digest());
    const Estimate estimate = bound.estimate(config, figures_of(target.arch));
    // Digits that a sum in another order leaves alone.
    estimates.add(fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {:.9g}", estimate.seconds, estimate.math, estimate.memory,
                              estimate.on_chip, estimate.overhead));
  }
  return fmt::format("{} of {} legal, programs {}, estimates {}", corners.found().size(), corners.legal(),
                     programs.hex(), estimates.hex());
}

void print(const Request& request, const Target& target) {
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.operation() != request.operation) continue;
    fmt::print("{} {} | {} | {}\n", target.arch.name(), request.key(), algorithm.name(),
               made_of(algorithm, request, target));
  }
}

int run(int count, char** arguments) {
  std::vector<Request> requests = requests_with_every_operand();
  for (int i = 1; i < count; ++i) {
    for (Request& request : requests_of_file(arguments[i])) requests.push_back(std::move(request));
  }
  for (const auto& [major, minor] : {std::pair(7, 5), {8, 0}, {9, 0}, {12, 0}}) {
    const Target target{Arch::of(major, minor), 12, 9};
    for (const Request& request : requests) print(request, target);
  }
  return 0;
}

}  // namespace
}  // namespace kiln::testing_support

int main(int count, char** arguments) try {
  return kiln::testing_support::run(count, arguments);
} catch (const std::exception& error) {
  fmt::print(stderr, "program_listing: {}\n", error.what());
  return 1;
}
