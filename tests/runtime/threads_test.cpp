// Sixteen threads on one Context, and on four devices at the same time. Meant for the thread sanitizer
// (scripts/sanitize), and of use without it: every result is compared with the reference.
#include <gtest/gtest.h>

#include <barrier>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kiln/conv.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/softmax.h"
#include "test_environment.h"

namespace kiln::threads_test {
namespace {

constexpr int threads = 16;
constexpr int devices = 4;

// Set before any driver is opened: the emulator reads it once. A real driver ignores it.
const bool four_devices = setenv("KILN_EMULATOR_DEVICE", "h200,a100,t4,l40s", 1) == 0;

ContextOptions options_for(int device) {
  ContextOptions options;
  options.environment = testing_support::test_environment();
  options.environment->kernel_store = "off";
  options.device = device;
  return options;
}

// One thread's operands of one request, on one device and a stream of its own.
class Layer {
 public:
  Layer(std::shared_ptr<const device::ContextHandle> device, const std::string& line, uint64_t seed)
      : request_(Request::parse(line)), device_(std::move(device)), stream_(device_) {
    for (const Operand& operand : request_.operands) {
      const bool is_output = operand.name == "y";
      if (is_output) y_ = host_.size();
      host_.push_back(is_output ? reference::poisoned(operand.spec)
                                : reference::filled(operand.spec, reference::Values::uniform, seed));
      memory_.push_back(device::upload(device_, host_.back()));
      addresses_.emplace_back(reinterpret_cast<const void*>(memory_.back().address()));
    }
  }

  const Request& request() const { return request_; }

  void run(const Plan& plan) {
    if (workspace_.size() < static_cast<size_t>(plan.workspace_bytes())) {
      workspace_ = device::Buffer(device_, static_cast<size_t>(plan.workspace_bytes()));
    }
    plan.run(stream_.raw(), addresses_, reinterpret_cast<void*>(workspace_.address()));
  }

  // Softmax of 4 x 37 only: through the operation call.
  void call(Context& context) {
    softmax_forward(context, Tensor(addresses_[0].pointer, f32, {4, 37}, nc),
                    Tensor(addresses_[1].pointer, f32, {4, 37}, nc), {}, stream_.raw());
  }

  // Fault of the result, or "".
  std::string fault() {
    stream_.synchronize();
    reference::Bindings bindings;
    for (size_t i = 0; i < host_.size(); ++i) bindings.operands[request_.operands[i].name] = host_[i];
    const auto output = device::download<std::byte>(*device_, memory_[y_].address(), host_[y_].size());
    const auto mismatch = reference::compare(request_, bindings, output);
    return mismatch ? request_.key() + ": " + mismatch->text() : "";
  }

 private:
  Request request_;
  std::shared_ptr<const device::ContextHandle> device_;
  device::Stream stream_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<device::Buffer> memory_;
  std::vector<Address> addresses_;
  device::Buffer workspace_{device_, 256};
  size_t y_ = 0;
};

std::shared_ptr<const device::ContextHandle> open_device(int ordinal) {
  return device::ContextHandle::acquire(device::Device(device::Driver::open({Environment::read().driver}), ordinal));
}

// Runs work(t) on all threads, which start at the same time. Returning a text other than "" fails the test.
void run_together(const std::function<std::string(int)>& work) {
  std::barrier start(threads);
  std::vector<std::string> faults(threads);
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        start.arrive_and_wait();
        try {
          faults[static_cast<size_t>(t)] = work(t);
        } catch (const std::exception& error) {
          faults[static_cast<size_t>(t)] = error.what();
        }
      });
    }
  }
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

const std::vector<std::string> lines = {
    "softmax_forward x=f32:4x37", "conv_forward x=f32:1x3x7x9 w=f32:5x3x3x3 pad=1 epilogue=bias+relu",
    "pool_forward x=f32:1x3x9x9 mode=max window=3 stride=2", "conv_forward x=f32:1x64x5x5 w=f32:8x64x3x3 pad=1"};

TEST(SixteenThreads, ShareOneContext) {
  const auto device = open_device(0);
  Context context(options_for(0));
  run_together([&](int t) -> std::string {
    const auto seed = static_cast<uint64_t>(t);
    for (size_t i = 0; i < lines.size(); ++i) {
      Layer layer(device, lines[(i + seed) % lines.size()], seed);
      if (t % 4 == 0) context.prepare({&layer.request(), 1});
      if (t % 4 == 1) context.explain(layer.request());
      const Plan plan = context.plan(layer.request());
      for (int repeat = 0; repeat < 3; ++repeat) layer.run(plan);
      if (const std::string fault = layer.fault(); !fault.empty()) return fault;
    }
    Layer called(device, lines[0], seed);
    for (int repeat = 0; repeat < 5; ++repeat) called.call(context);
    return called.fault();
  });
}

TEST(SixteenThreads, WorkOnFourDevicesAtTheSameTime) {
  ASSERT_TRUE(four_devices);
  if (device::Driver::open({Environment::read().driver})->device_count() < devices) {
    GTEST_SKIP() << "there are fewer than four devices";
  }
  std::vector<std::shared_ptr<const device::ContextHandle>> opened;
  std::vector<std::unique_ptr<Context>> contexts;
  for (int d = 0; d < devices; ++d) {
    opened.push_back(open_device(d));
    contexts.push_back(std::make_unique<Context>(options_for(d)));
  }
  run_together([&](int t) -> std::string {
    const auto d = static_cast<size_t>(t % devices);
    const auto seed = static_cast<uint64_t>(t);
    for (size_t i = 0; i < 2; ++i) {
      Layer layer(opened[d], lines[i], seed);
      const Plan plan = contexts[d]->plan(layer.request());
      for (int repeat = 0; repeat < 3; ++repeat) layer.run(plan);
      if (const std::string fault = layer.fault(); !fault.empty()) return fault;
    }
    Layer called(opened[d], lines[0], seed);
    for (int repeat = 0; repeat < 5; ++repeat) called.call(*contexts[d]);
    return called.fault();
  });
}

}  // namespace
}  // namespace kiln::threads_test
