// Plan::run allocates nothing on the host: neither in loops nor while a graph is captured. A program of its own,
// because it counts every allocation of the process.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "call_key.h"
#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/execution/executable.h"
#include "kiln/plan.h"
#include "loaded_plan.h"
#include "null_driver.h"
#include "plan_table.h"

namespace {
std::atomic<size_t> allocations{0};
}  // namespace

// Not inlined: GCC takes free() for a mismatch of the new expression otherwise.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace kiln {
namespace {

// Kernels with a fixed grid and one that depends on n, and a part of the workspace to clear.
execution::CompiledProgram program() {
  Launch launch;
  launch.entry = "kernel";
  launch.grid = {Count{0, 64, 7}, Count{}, Count{}};
  launch.block = {256, 1, 1};
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}, Scalar::alpha, Scalar::n, WorkspaceArgument{256}};
  Launch fixed = launch;
  fixed.grid = {Count{3, 0, 1}, Count{}, Count{}};
  execution::CompiledProgram compiled;
  compiled.program.sources = {"source"};
  compiled.program.steps = {ClearWorkspace{0, 512}, launch, fixed};
  compiled.program.workspace_bytes = 1024;
  compiled.images = {{"ptx", "cubin", {}}};
  return compiled;
}

TEST(PlanRun, AllocatesNothing) {
  const auto context = device::ContextHandle::acquire(device::Device(null_driver(), 0));
  const Request request = Request::parse("softmax_forward x=f32:4x37 n=? alpha=any");
  const auto loaded = std::make_shared<const LoadedPlan>(request, Choice{"none", {}}, "test",
                                                         execution::Executable(context, program(), {"x", "y"}));
  const Plan plan(loaded);
  PlanTable table;
  CallKey key(1);
  key.add(7);
  table.insert(key, key.hash(), loaded);
  auto* const memory = reinterpret_cast<std::byte*>(1 << 20);
  RunValues values;
  values.alpha = 0.5f;

  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    values.n = i % 5;
    plan.run(nullptr, {memory, memory + 4096}, memory + 8192, values);
    table.find(key, key.hash())->run(nullptr, std::array<Address, 2>{memory, memory + 4096}, memory + 8192, values);
  }
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_THROW(plan.run(nullptr, {memory}, nullptr, values), Error);
  EXPECT_GT(allocations - before, 0U) << "the counter does not count";
}

}  // namespace
}  // namespace kiln
