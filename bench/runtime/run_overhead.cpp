// Host time of Plan::run above a bare launch: the same kernel launched both ways through a driver table that does
// nothing.
//
// Method: a driver of entry points that return success at once; a program of one launch with 11 arguments, as a
// convolution has. Rounds of 100,000 calls of each kind alternate in one run; the medians of 15 rounds and their
// difference are printed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/launch.h"
#include "kiln/execution/executable.h"
#include "loaded_plan.h"
#include "null_driver.h"

namespace {

constexpr int calls = 100000;
constexpr int rounds = 15;

// One launch with the arguments of a convolution.
kiln::execution::CompiledProgram program() {
  kiln::Launch launch;
  launch.entry = "kernel";
  launch.grid = {kiln::Count{64, 0, 1}, kiln::Count{}, kiln::Count{}};
  launch.block = {256, 1, 1};
  for (const char* name : {"x", "w", "y", "bias", "residual"}) launch.arguments.push_back(kiln::OperandArgument{name});
  for (kiln::Scalar scalar :
       {kiln::Scalar::alpha, kiln::Scalar::beta, kiln::Scalar::clip_lo, kiln::Scalar::clip_hi, kiln::Scalar::n}) {
    launch.arguments.push_back(scalar);
  }
  launch.arguments.push_back(kiln::WorkspaceArgument{0});
  kiln::execution::CompiledProgram compiled;
  compiled.program.sources = {"source"};
  compiled.program.steps = {launch};
  compiled.images = {{"ptx", "cubin", {}}};
  return compiled;
}

template <class Body>
double nanoseconds_per_call(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) body();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / calls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const auto driver = kiln::null_driver();
  const auto context = kiln::device::ContextHandle::acquire(kiln::device::Device(driver, 0));
  const kiln::Request request =
      kiln::Request::parse("conv_forward x=f32:1x8x8x8 w=f32:8x8x3x3 pad=1 epilogue=bias+add");
  std::vector<std::string> names;
  for (const kiln::Operand& operand : request.operands) names.push_back(operand.name);
  const kiln::Plan plan(std::make_shared<const kiln::LoadedPlan>(
      request, kiln::Choice{"none", {}}, "bench", "", kiln::execution::Executable(context, program(), names)));

  const kiln::device::Module module(context, "image", "bench");
  const kiln::device::Function function = module.function("kernel");
  std::array<unsigned long long, 11> values{};
  std::array<void*, 11> parameters{};
  for (size_t i = 0; i < values.size(); ++i) parameters[i] = &values[i];
  const std::array<kiln::Address, 5> operands = {reinterpret_cast<void*>(4096), reinterpret_cast<void*>(8192),
                                                 reinterpret_cast<void*>(12288), reinterpret_cast<void*>(16384),
                                                 reinterpret_cast<void*>(20480)};

  std::vector<double> bare, run;
  for (int round = 0; round < rounds; ++round) {
    bare.push_back(nanoseconds_per_call([&] {
      kiln::device::launch(function, {64, 1, 1}, {256, 1, 1}, 0, nullptr, parameters.data());
    }));
    run.push_back(nanoseconds_per_call([&] { plan.run(nullptr, operands); }));
  }
  fmt::print("Plan::run above a bare launch, through a driver that does nothing ({} rounds of {} calls):\n", rounds,
             calls);
  fmt::print("  bare launch {:.1f} ns, Plan::run {:.1f} ns: {:.1f} ns above\n", median(bare), median(run),
             median(run) - median(bare));
}
