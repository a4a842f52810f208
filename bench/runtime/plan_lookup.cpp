// How long a call takes to find its plan: from the entry of conv_forward, and of call() with the same arguments by
// their names; 1,000 plans, random order, 2 threads.
//
// Method: 1,000 convolutions of different shapes are prepared on the emulated device, each a plan of its own. Every
// call is of an empty dynamic batch, so it does everything that a call does (key, look-up, checks of its arguments) but
// the launch. Each thread takes a clock reading around batches of 1,000 calls in its own random order; a batch's time
// over its calls is one sample, and the median over all samples and both threads is printed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "kiln/call.h"
#include "kiln/conv.h"

namespace {

constexpr int plans = 1000;
constexpr int batches = 200;
constexpr int threads = 2;

struct Call {
  kiln::Tensor x, w, y;
};

// Shapes that differ in width and channels. Addresses are never used: the batch is empty.
std::vector<Call> make_calls() {
  const auto* address = reinterpret_cast<const void*>(4096);
  const auto* filter = reinterpret_cast<const void*>(1 << 20);
  std::vector<Call> calls;
  for (int64_t i = 0; i < plans; ++i) {
    const int64_t c = 1 + i % 10, width = 4 + i / 10;
    calls.push_back({kiln::Tensor(address, kiln::f32, {0, c, 4, width}, kiln::nchw),
                     kiln::Tensor(filter, kiln::f32, {2, c, 3, 3}, kiln::nchw),
                     kiln::Tensor(address, kiln::f32, {0, 2, 4, width}, kiln::nchw)});
  }
  return calls;
}

using Caller = void (*)(kiln::Context& context, const Call& call);

void by_function(kiln::Context& context, const Call& call) {
  kiln::conv_forward(context, call.x, call.w, call.y, {.pad = {1, 1}, .dynamic_batch = true});
}

void by_name(kiln::Context& context, const Call& call) {
  kiln::call(context, "conv_forward pad=1,1 n=?", {{"x", call.x}, {"w", call.w}, {"y", call.y}});
}

std::vector<double> sample(kiln::Context& context, Caller call, const std::vector<Call>& calls, unsigned seed) {
  std::vector<size_t> order(calls.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<double> nanoseconds;
  for (int batch = 0; batch < batches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i : order) call(context, calls[i]);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    nanoseconds.push_back(elapsed.count() / static_cast<double>(calls.size()));
  }
  return nanoseconds;
}

void measure(kiln::Context& context, Caller call, const char* entry, const std::vector<Call>& calls) {
  fmt::print("making {} plans ...\n", plans);
  {
    std::vector<std::jthread> makers;
    for (size_t t = 0; t < threads; ++t) {
      makers.emplace_back([&, t] {
        for (size_t i = t; i < calls.size(); i += threads) call(context, calls[i]);
      });
    }
  }
  std::vector<std::vector<double>> samples(threads);
  {
    std::vector<std::jthread> callers;
    for (unsigned t = 0; t < threads; ++t) {
      callers.emplace_back([&, t] { samples[t] = sample(context, call, calls, t + 1); });
    }
  }
  std::vector<double> all;
  for (const auto& some : samples) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  fmt::print("plan look-up from the entry of {}, {} plans in random order on {} threads:\n", entry, plans, threads);
  fmt::print("  median {:.0f} ns a call, fastest {:.0f} ns, slowest {:.0f} ns ({} samples of {} calls)\n",
             all[all.size() / 2], all.front(), all.back(), all.size(), plans);
}

}  // namespace

int main() {
  kiln::ContextOptions options;
  options.environment = kiln::Environment::read();
  options.environment->driver = "emulator";
  options.cache = "off";
  kiln::Context context(options);
  const std::vector<Call> calls = make_calls();
  measure(context, by_function, "conv_forward", calls);
  measure(context, by_name, "call", calls);
}
