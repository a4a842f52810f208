// Memory and results of a Context that serves ever new sizes: 8 threads call softmax_forward of rows of 1, 2, 3, ...
// numbers, each size once, and look at every result.
//
//   bench_many_sizes [SIZES [KEPT_PLANS]]      4000 sizes, 256 plans, unless given
//
// Method: the emulated device, no store of kernels, so every size is compiled. Ten times in the run the resident memory
// of the process is printed, with the plans that are loaded. Memory is flat when it does not grow after the limit of
// plans was reached. The first time prints what a plan takes.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/softmax.h"

namespace {

constexpr int threads = 8;

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  long total = 0, resident = 0;
  status >> total >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

// Rows of `length` ones, whose softmax is 1 / length.
bool is_right(kiln::Context& context, const std::shared_ptr<const kiln::device::ContextHandle>& device,
              const kiln::device::Stream& stream, int64_t length) {
  const std::vector<float> ones(static_cast<size_t>(length), 1);
  const kiln::device::Buffer x = kiln::device::upload(device, ones), y = kiln::device::upload(device, ones);
  const auto tensor = [&](const kiln::device::Buffer& buffer) {
    return kiln::Tensor(reinterpret_cast<void*>(buffer.address()), kiln::f32, {1, length}, kiln::nc);
  };
  kiln::softmax_forward(context, tensor(x), tensor(y), {}, stream.raw());
  stream.synchronize();
  const auto result = kiln::device::download<float>(*device, y.address(), ones.size());
  const auto is_close = [&](float value) { return std::abs(value * static_cast<float>(length) - 1) < 1e-5F; };
  return std::ranges::all_of(result, is_close);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t sizes = argc > 1 ? std::atoll(argv[1]) : 4000;
  kiln::ContextOptions options;
  options.environment = kiln::Environment::read();
  options.environment->driver = "emulator";
  options.cache = "off";
  options.kernel_store = "off";
  options.kept_plans = argc > 2 ? std::atoll(argv[2]) : 256;
  kiln::Context context(options);
  const auto device =
      kiln::device::ContextHandle::acquire(kiln::device::Device(kiln::device::Driver::open({"emulator"}), 0));
  std::atomic<int64_t> next = 1, wrong = 0;
  std::mutex printing;
  const double before = resident_mib();
  fmt::print("{:>8} {:>12} {:>8} {:>10}\n", "sizes", "memory, MiB", "plans", "given up");
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      const kiln::device::Stream stream(device);
      for (int64_t length = next++; length <= sizes; length = next++) {
        if (!is_right(context, device, stream, length)) ++wrong;
        if (length % std::max<int64_t>(1, sizes / 10) != 0) continue;
        const std::lock_guard lock(printing);
        const kiln::PlanCount count = context.plan_count();
        fmt::print("{:8} {:12.1f} {:8} {:10}\n", length, resident_mib() - before, count.plans, count.given_up);
      }
    });
  }
  running.clear();
  fmt::print("{} results of {} are wrong\n", wrong.load(), sizes);
  return wrong == 0 ? 0 : 1;
}
