// Every launch keeps to the workspace that it says it touches (WorkspaceArgument): here each has memory of just so many
// bytes for each of its ranges, and what they held goes from launch to launch. A whole workspace would hide that one
// launch needs more than it says as long as another one says more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/generator/operation.h"
#include "request_suites.h"
#include "variant_check.h"

namespace kiln::testing_support::workspace_test {
namespace {

std::vector<WorkspaceArgument> ranges_of(const Step& step) {
  std::vector<WorkspaceArgument> ranges;
  const auto* launch = std::get_if<Launch>(&step);
  if (launch == nullptr) return ranges;
  for (const Argument& argument : launch->arguments) {
    if (const auto* range = std::get_if<WorkspaceArgument>(&argument)) ranges.push_back(*range);
  }
  return ranges;
}

// A program that runs launch by launch, each with its own memory in the place of the workspace.
class ApartRun {
 public:
  ApartRun(const TestDevice& device, const Program& program, const std::vector<std::string>& operands)
      : device_(device), workspace_(static_cast<size_t>(program.workspace_bytes)) {
    for (const Step& step : program.steps) {
      if (const auto* clear = std::get_if<ClearWorkspace>(&step)) {
        launches_.push_back({nullptr, {{clear->offset, clear->bytes}}});
        continue;
      }
      auto launch = std::get<Launch>(step);
      Apart apart{nullptr, ranges_of(step)};
      std::vector<std::string> names = operands;
      for (Argument& argument : launch.arguments) {
        if (!std::holds_alternative<WorkspaceArgument>(argument)) continue;
        names.push_back(fmt::format("range {}", names.size()));
        argument = OperandArgument{names.back()};
      }
      const Program one{program.sources, {launch}};
      apart.kernel = std::make_unique<execution::Executable>(device.load(one, device.target, names));
      launches_.push_back(std::move(apart));
    }
  }

  void operator()(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& values,
                  int64_t n) {
    std::fill(workspace_.begin(), workspace_.end(), std::byte{0xff});
    for (const Apart& apart : launches_) {
      if (!apart.kernel) {
        for (const WorkspaceArgument& range : apart.ranges) std::fill_n(held(range), range.bytes, std::byte{0});
        continue;
      }
      std::vector<cuda_abi::CUdeviceptr> addresses(operands.begin(), operands.end());
      std::vector<device::Buffer> buffers;
      for (const WorkspaceArgument& range : apart.ranges) {
        buffers.emplace_back(device_.context, static_cast<size_t>(range.bytes));
        device::copy_to_device(*device_.context, buffers.back().address(), held(range), buffers.back().size());
        addresses.push_back(buffers.back().address());
      }
      apart.kernel->run(stream, addresses, values, n, 0);
      device_.context->synchronize();
      for (size_t i = 0; i < buffers.size(); ++i) {
        device::copy_to_host(*device_.context, held(apart.ranges[i]), buffers[i].address(), buffers[i].size());
      }
    }
  }

 private:
  struct Apart {
    std::unique_ptr<execution::Executable> kernel;  // none where memory is cleared
    std::vector<WorkspaceArgument> ranges;
  };

  std::byte* held(const WorkspaceArgument& range) { return workspace_.data() + range.offset; }

  const TestDevice& device_;
  std::vector<std::byte> workspace_;
  std::vector<Apart> launches_;
};

// Programs of the legal points with the least and the most workspace.
std::vector<Program> extremes(const Algorithm& algorithm, const Request& request, const Target& target) {
  std::vector<Program> found;
  constexpr size_t enough = 60;  // points of a space
  const std::vector<Config> legal = algorithm.on(request, target).legal();
  for (size_t i = 0; i < legal.size(); i += legal.size() / enough + 1) {
    Program program = algorithm.on(request, target).program(built_in_catalogue().library(), legal[i]);
    if (program.workspace_bytes == 0) continue;
    const auto less = [](const Program& a, const Program& b) { return a.workspace_bytes < b.workspace_bytes; };
    if (found.empty()) {
      found = {program, program};
    } else {
      if (less(program, found.front())) found.front() = program;
      if (less(found.back(), program)) found.back() = std::move(program);
    }
  }
  if (found.size() == 2 && found.front() == found.back()) found.pop_back();
  return found;
}

std::vector<Request> requests() {
  std::vector<Request> all;
  // Two passes share the workspace, and either may be the larger one.
  for (const char* line :
       {"norm_backward dy=f32:128x256 w=f32:1x256 dw=f32:1x256 db=f32:1x256",
        "norm_backward dy=f32:1024x16 w=f32:1x16 dw=f32:1x16", "cross_entropy_forward x=f32:96x40 reduction=sum n=?",
        "pool_backward dy=f32:3x5x4x3 "
        "x=f32:3x5x7x9 window=3,2 stride=2,3 pad=1,0 n=?"}) {
    all.push_back(Request::parse(line));
  }
  for (const Request& request : requests_with_every_operand()) {
    if (!request.user_code) all.push_back(request);
  }
  return all;
}

// Whether another request's program of the algorithm is of use: what two of them need is told alike.
bool is_news(const std::string& algorithm) {
  static std::map<std::string, int> seen;
  return ++seen[algorithm] <= 2;
}

class Workspace : public testing::TestWithParam<Request> {};

TEST_P(Workspace, HoldsWhatEachLaunchSays) {
  const Request& request = GetParam();
  const TestDevice& device = TestDevice::get();
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.operation() != request.operation || algorithm.on(request, device.target).refusal()) continue;
    const std::vector<Program> programs = extremes(algorithm, request, device.target);
    if (programs.empty() || !is_news(algorithm.name())) continue;
    for (const Program& program : programs) {
      EXPECT_EQ(program.workspace_bytes, workspace_end(program.steps)) << algorithm.name();
      checking::Checker checker(device.context, request, {});
      ApartRun run(device, program, checker.operand_names());
      const checking::Verdict verdict = checker.check({[&](auto stream, auto operands, const RunValues& values,
                                                           int64_t n, auto) { run(stream, operands, values, n); },
                                                       0});
      EXPECT_TRUE(verdict.passed) << algorithm.name() << ": " << verdict.text << "\n" << request.key();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Templates, Workspace, testing::ValuesIn(requests()));

// An algorithm that takes a workspace at all takes it for a request above.
TEST(WorkspaceOfAll, IsAmongTheseRequests) {
  std::set<std::string> with_workspace;
  for (const Request& request : requests()) {
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      const Target target = target_of(9, 0);
      if (algorithm.operation() != request.operation || algorithm.on(request, target).refusal()) continue;
      if (!extremes(algorithm, request, target).empty()) with_workspace.insert(algorithm.name());
    }
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    const std::string& stem = algorithm.template_path();
    const std::string descriptor = stem.substr(0, stem.rfind('.')) + ".cpp";
    const bool says_so = built_in_catalogue().library().text(descriptor).find("Workspace") != std::string::npos;
    EXPECT_TRUE(!says_so || with_workspace.contains(algorithm.name())) << algorithm.name();
  }
  EXPECT_GE(with_workspace.size(), 15u);
}

}  // namespace
}  // namespace kiln::testing_support::workspace_test
