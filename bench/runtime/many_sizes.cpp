// Memory and results of a Context that serves ever new sizes: threads call softmax_forward of rows of 1, 2, 3, ...
// numbers, each size once, and look at every result.
//
//   bench_many_sizes [SIZES [KEPT_PLANS [exact|at_once [THREADS]]]]      4000 sizes, 256 plans, exact, 8 threads
//
// Method: the device of KILN_DRIVER, by default the emulated one. No store of kernels, so every size is compiled;
// at_once: an empty store, so every kernel that serves many sizes is compiled once, and exact plans in the background,
// while the sizes go on. Ten times in the run the resident memory of the process is printed, with the plans that are
// loaded. Memory is flat when it does not grow after the limit of plans was reached. The first time prints what a plan
// takes. In the end: the host time of a call, each of which is the first of its size, of all but the first tenth; and
// the compiles.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/softmax.h"

namespace {

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  long total = 0, resident = 0;
  status >> total >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

// Rows of `length` ones, whose softmax is 1 / length.
bool is_right(kiln::Context& context, const std::shared_ptr<const kiln::device::ContextHandle>& device,
              const kiln::device::Stream& stream, int64_t length, double& seconds) {
  const std::vector<float> ones(static_cast<size_t>(length), 1);
  const kiln::device::Buffer x = kiln::device::upload(device, ones), y = kiln::device::upload(device, ones);
  const auto tensor = [&](const kiln::device::Buffer& buffer) {
    return kiln::Tensor(reinterpret_cast<void*>(buffer.address()), kiln::f32, {1, length}, kiln::nc);
  };
  const auto start = std::chrono::steady_clock::now();
  kiln::softmax_forward(context, tensor(x), tensor(y), {}, stream.raw());
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  if (!options.environment->driver) options.environment->driver = "emulator";
  options.cache = "off";
  options.kernel_store = "off";
  options.kept_plans = argc > 2 ? std::atoll(argv[2]) : 256;
  std::string store = std::filesystem::temp_directory_path() / "kiln-sizes-XXXXXX";
  const bool at_once = argc > 3 && argv[3] == std::string_view("at_once");
  if (at_once) {
    if (mkdtemp(store.data()) == nullptr) {
      fmt::print(stderr, "bench_many_sizes: no folder can be made in {} (TMPDIR names another)\n",
                 std::filesystem::path(store).parent_path().string());
      return 1;
    }
    options.kernel_store = store;
    options.first_call = kiln::FirstCall::at_once;
  }
  const int threads = argc > 4 ? std::atoi(argv[4]) : 8;
  auto context_of_all = std::make_unique<kiln::Context>(options);
  kiln::Context& context = *context_of_all;
  const auto device = kiln::device::ContextHandle::acquire(
      kiln::device::Device(kiln::device::Driver::open({options.environment->driver}), 0));
  std::atomic<int64_t> next = 1, wrong = 0;
  std::atomic<double> spent = 0;
  std::mutex printing;
  const double before = resident_mib();
  fmt::print("{:>8} {:>12} {:>8} {:>10}\n", "sizes", "memory, MiB", "plans", "given up");
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      const kiln::device::Stream stream(device);
      for (int64_t length = next++; length <= sizes; length = next++) {
        double seconds = 0;
        if (!is_right(context, device, stream, length, seconds)) ++wrong;
        if (length > sizes / 10) spent += seconds;
        if (length % std::max<int64_t>(1, sizes / 10) != 0) continue;
        const std::lock_guard lock(printing);
        const kiln::PlanCount count = context.plan_count();
        fmt::print("{:8} {:12.1f} {:8} {:10}\n", length, resident_mib() - before, count.plans, count.given_up);
        std::fflush(stdout);  // the run may be ended
      }
    });
  }
  running.clear();
  const int64_t timed = sizes - sizes / 10;
  fmt::print("{} results of {} are wrong; {:.2f} ms a call, {} compiles\n", wrong.load(), sizes,
             1e3 * spent / static_cast<double>(timed), context.compiles().kernels);
  context_of_all.reset();
  if (at_once) std::filesystem::remove_all(store);
  return wrong == 0 ? 0 : 1;
}
