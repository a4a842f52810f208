// Plan::run allocates nothing on the host and looks nothing up: neither in loops nor while a graph is captured. A
// program of its own, because it counts every allocation of Kiln.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "call_key.h"
#include "device_fixture.h"
#include "epochs.h"
#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/execution/executable.h"
#include "kiln/norm.h"
#include "kiln/plan.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/templates/catalogue.h"
#include "loaded_plan.h"
#include "null_driver.h"
#include "plan_table.h"
#include "variant_check.h"

namespace {
// Allocations of this thread, without those that the driver makes when it is called.
thread_local size_t allocations = 0;
thread_local bool in_driver = false;
// Memory runs out for larger blocks.
thread_local size_t largest = std::numeric_limits<size_t>::max();
}  // namespace

// Not inlined: GCC takes free() for a mismatch of the new expression otherwise.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (!in_driver) ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// For what is aligned further, such as slots of tables.
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  if (!in_driver) ++allocations;
  const auto boundary = static_cast<size_t>(alignment);
  void* const memory =
      bytes > largest ? nullptr : std::aligned_alloc(boundary, (bytes + boundary - 1) / boundary * boundary);
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace kiln::allocation_test {
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

TEST(PlanTable, HasRoomLeftWhereMemoryForALargerOneRunsOut) {
  const auto key_number = [](int64_t i) {
    CallKey key;
    key.add(i);
    return key;
  };
  const auto* const plan = reinterpret_cast<const LoadedPlan*>(8);
  PlanTable table;
  int64_t in = 0;
  for (; in < 1000; ++in) {
    try {
      table.insert(key_number(in), key_number(in).hash(), plan);
    } catch (const std::bad_alloc&) {
      break;
    }
    largest = 8192;  // from the second key on: the memory of keys is there
  }
  const auto slots = static_cast<int64_t>(table.slots());
  EXPECT_EQ(in, slots / 2);
  for (int64_t i = in; i < 2 * slots; ++i) {
    EXPECT_THROW(table.insert(key_number(i), key_number(i).hash(), plan), std::bad_alloc);
  }
  const epochs::Reading reading;
  for (int64_t i = 0; i < 2 * slots; ++i) {
    ASSERT_EQ(table.find(key_number(i), key_number(i).hash()), i < in ? plan : nullptr) << i;
  }
  largest = std::numeric_limits<size_t>::max();
  table.insert(key_number(in), key_number(in).hash(), plan);
  EXPECT_EQ(table.find(key_number(in), key_number(in).hash()), plan);
}

TEST(PlanRun, AllocatesNothing) {
  const auto context = device::ContextHandle::acquire(device::Device(null_driver(), 0));
  const Request request = Request::parse("softmax_forward x=f32:4x37 n=? alpha=any");
  const auto loaded = std::make_shared<const LoadedPlan>(request, Choice{"none", {}}, "test", "",
                                                         execution::Executable(context, program(), {"x", "y"}));
  const Plan plan(loaded);
  PlanTable table;
  CallKey key;
  key.add(int64_t{7});
  table.insert(key, key.hash(), loaded.get());
  { const epochs::Reading registers_the_thread; }
  auto* const memory = reinterpret_cast<std::byte*>(1 << 20);
  RunValues values;
  values.alpha = 0.5f;

  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    values.n = i % 5;
    plan.run(nullptr, {memory, memory + 4096}, memory + 8192, values);
    const epochs::Reading reading;
    table.find(key, key.hash())
        ->run(nullptr, std::array<Address, 2>{memory, memory + 4096}, {.workspace = memory + 8192}, values);
  }
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_THROW(plan.run(nullptr, {memory}, nullptr, values), Error);
  EXPECT_GT(allocations - before, 0U) << "the counter does not count";
}

// A driver that hands every call to another one and says which entry points were called.
class WatchedDriver {
 public:
  /// The entry points called since the last clear(), in order.
  static std::vector<std::string> called;

  static std::shared_ptr<const device::Driver> of(const device::Driver& driver) {
    device::DriverTable table = driver.calls();
#define KILN_WATCH(name, ...) table.name = Entry<&device::DriverTable::name>::watched(table.name, #name);
    KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_WATCH)
#undef KILN_WATCH
    return device::Driver::from_table(table, "a watched driver", driver.is_emulated());
  }

 private:
  template <auto member>
  struct Entry {
    template <class... Parameters>
    using Function = cuda_abi::CUresult (*)(Parameters...);

    template <class... Parameters>
    static Function<Parameters...> watched(Function<Parameters...> function, const char* name) {
      if (function == nullptr) return nullptr;
      static Function<Parameters...> real;
      static const char* symbol;
      real = function;
      symbol = name;
      return [](Parameters... parameters) {
        in_driver = true;
        called.emplace_back(symbol);
        const cuda_abi::CUresult result = real(parameters...);
        in_driver = false;
        return result;
      };
    }
  };
};
std::vector<std::string> WatchedDriver::called;

struct CapturedCase {
  const char* request;
  const char* algorithm;
};

class CapturedRun : public testing::TestWithParam<CapturedCase> {
 protected:
  void SetUp() override {
    watched_.context = device::ContextHandle::acquire(device::Device(WatchedDriver::of(device().context->driver()), 0));
    for (const Operand& operand : request_.operands) {
      const bool is_output = operand.name == "y";
      host_.push_back(is_output ? reference::poisoned(operand.spec)
                                : reference::filled(operand.spec, reference::Values::uniform, 7));
      memory_.push_back(device::upload(watched_.context, std::span<const std::byte>(host_.back())));
      addresses_.emplace_back(reinterpret_cast<const void*>(memory_.back().address()));
    }
  }

  static const testing_support::TestDevice& device() { return testing_support::TestDevice::get(); }

  // A plan of no Context: there is no table of plans that it could look into.
  Plan plan() const {
    const Catalogue catalogue = make_catalogue(embedded_sources());
    const Choice choice{GetParam().algorithm,
                        *catalogue.find(GetParam().algorithm)->on(request_, watched_.target).first_legal()};
    std::vector<std::string> names;
    for (const Operand& operand : request_.operands) names.push_back(operand.name);
    return Plan(std::make_shared<const LoadedPlan>(request_, choice, "test", "",
                                                   watched_.load(catalogue.program(request_, watched_.target, choice),
                                                                 watched_.target, names, execution::Products::ptx)));
  }

  bool is_right() const {
    reference::Bindings bindings;
    std::vector<std::byte> y;
    for (size_t i = 0; i < host_.size(); ++i) {
      bindings.operands[request_.operands[i].name] = host_[i];
      if (request_.operands[i].name == "y") {
        y = device::download<std::byte>(*watched_.context, memory_[i].address(), host_[i].size());
      }
    }
    return !reference::compare(request_, bindings, y);
  }

  template <class... Parameters, class... Arguments>
  void call(cuda_abi::CUresult (*device::DriverTable::*entry)(Parameters...), Arguments... arguments) const {
    ASSERT_EQ(watched_.context->call(entry, arguments...), cuda_abi::CUDA_SUCCESS);
  }

  const Request request_ = Request::parse(GetParam().request);
  testing_support::TestDevice watched_ = device();  // with a context of the watched driver
  std::vector<std::vector<std::byte>> host_;
  std::vector<device::Buffer> memory_;
  std::vector<Address> addresses_;
};

// The first run of the plan is captured: nothing was made ready by one before. The driver is asked for nothing but the
// current context, whether the stream is captured, what memory is at each address and how large it is, and the work
// itself, no function by its name. The second does not even ask that. A replay is the driver's alone.
TEST_P(CapturedRun, AllocatesNothingAndLooksNothingUp) {
  const Plan plan = this->plan();
  const device::Buffer workspace(watched_.context, static_cast<size_t>(plan.workspace_bytes()));
  const device::Stream stream(watched_.context);
  cuda_abi::CUgraph graph = nullptr;
  cuda_abi::CUgraphExec executable = nullptr;
  using Table = device::DriverTable;
  call(&Table::cuStreamBeginCapture_v2, stream.raw(), cuda_abi::CU_STREAM_CAPTURE_MODE_GLOBAL);
  WatchedDriver::called.clear();
  size_t before = allocations;
  plan.run(stream.raw(), addresses_, reinterpret_cast<void*>(workspace.address()));
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_THAT(WatchedDriver::called, testing::Contains("cuLaunchKernel"));
  const auto is_work = testing::AnyOf("cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuLaunchKernel");
  const auto asks = testing::AnyOf("cuPointerGetAttribute", "cuMemGetAddressRange_v2",
                                   "cuThreadExchangeStreamCaptureMode", "cuStreamIsCapturing");
  EXPECT_THAT(WatchedDriver::called, testing::Each(testing::AnyOf(is_work, asks)));
  WatchedDriver::called.clear();
  before = allocations;
  plan.run(stream.raw(), addresses_, reinterpret_cast<void*>(workspace.address()));
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_THAT(WatchedDriver::called, testing::Each(is_work));
  call(&Table::cuStreamEndCapture, stream.raw(), &graph);
  call(&Table::cuGraphInstantiateWithFlags, &executable, graph, 0ULL);
  EXPECT_FALSE(is_right());

  WatchedDriver::called.clear();
  before = allocations;
  EXPECT_EQ(watched_.context->driver().calls().cuGraphLaunch(executable, stream.raw()), cuda_abi::CUDA_SUCCESS);
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_THAT(WatchedDriver::called, testing::ElementsAre("cuGraphLaunch"));
  stream.synchronize();
  EXPECT_TRUE(is_right());
  call(&Table::cuGraphExecDestroy, executable);
  call(&Table::cuGraphDestroy, graph);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, CapturedRun,
    testing::Values(CapturedCase{"conv_forward x=f32:1x3x9x7 w=f32:5x3x3x3 pad=1 epilogue=bias+relu",
                                 "conv_implicit_gemm"},
                    CapturedCase{"conv_forward x=f32:2x16x7x6 w=f32:12x16x3x3 pad=1 epilogue=bias+add",
                                 "conv_implicit_gemm_splitk"},  // several kernels and a workspace
                    CapturedCase{"softmax_forward x=f32:4x37", "softmax_warp"}),
    [](const auto& test) { return std::string(test.param.algorithm); });

class Calls : public DeviceTest {};

// The batch is empty: such calls do what every call does on the host but the launch.
TEST_F(Calls, OfGroupNormalisationWithUserCodeAllocateNothing) {
  Context context(options());
  const auto at = [](size_t number, std::initializer_list<int64_t> extents) {
    return Tensor(reinterpret_cast<const void*>((number + 1) << 20), f32, extents, contiguous);
  };
  const Tensor x = at(0, {0, 6, 5}), y = at(1, {0, 6, 5}), w = at(2, {6}), mean = at(3, {0, 2});
  const Tensor read = at(4, {0, 6, 5}), dy = at(5, {0, 6, 5}), residual = at(6, {0, 6, 5});
  const Expression code("acc * read + each", {"read", "each"});
  const Epilogue epilogue = expression(code, {{"read", read}, {"each", at(7, {1, 6, 1})}});
  const Tensor scale = at(8, {0, 6}), shift = at(9, {0, 6});
  const Epilogue of_pairs = expression(code, {{"read", at(10, {0, 6})}, {"each", at(11, {1, 2})}});
  const auto call = [&] {
    group_norm_forward(context, 2, x, y, {.w = w, .mean = mean, .epilogue = epilogue, .dynamic_batch = true});
    group_norm_forward(context, 3, x, y, {.w = w, .epilogue = add(residual), .dynamic_batch = true});
    group_norm_affine(context, 2, x, scale, shift, {.w = w, .epilogue = of_pairs, .dynamic_batch = true});
    group_norm_backward(context, 2, dy, x, mean, y,
                        {.w = w, .mean = mean, .dynamic_batch = true, .epilogue = epilogue});
  };
  call();  // makes the plans
  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) call();
  EXPECT_EQ(allocations - before, 0U);
}

}  // namespace
}  // namespace kiln::allocation_test
