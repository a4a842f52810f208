// How fast the emulator's execution core runs convolutions, on SIMT lanes and on tensor cores, as a share of what this
// core's FMA units can do. Kernels, and levels of checks, that are named as arguments run alone: for a profiler.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fma_peak.h"
#include "kiln/device/nvrtc.h"
#include "machine/machine.h"
#include "units/unit_table.h"

namespace {

using namespace kiln::emulator;

constexpr int C = 64, H = 56, W = 56, K = 64;
constexpr double flops = 2.0 * K * H * W * C * 9;
constexpr int repeats = 7;
constexpr double largest_error = 0.02;  // in sums of 576 products below 1: half a unit of f16's last place is 0.016
constexpr std::array kernels = {"conv_naive", "conv_simt_8x8", "conv_mma_f16"};

std::string kernel_source(const std::string& name) {
  std::ifstream file(std::string(KILN_BENCH_KERNELS) + "/" + name + ".cu");
  if (!file) throw std::runtime_error("cannot open the kernel " + name);
  std::stringstream text;
  text << "constexpr int C = " << C << ", H = " << H << ", W = " << W << ", K = " << K << ";\n" << file.rdbuf();
  return text.str();
}

/// Values that f16 has, too.
std::vector<float> random_values(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> draw(-1024, 1024);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(draw(engine)) / 1024;
  return values;
}

/// x: [C][H][W], w: [K][C][9], y: [K][H][W].
struct Tensors {
  std::vector<float> x = random_values(size_t{C} * H * W, 1);
  std::vector<float> w = random_values(size_t{K} * C * 9, 2);
  std::vector<float> y = std::vector<float>(size_t{K} * H * W);
};

std::vector<float> host_convolution(const Tensors& t) {
  std::vector<float> y(t.y.size());
  for (int k = 0; k < K; ++k) {
    for (int p = 0; p < H; ++p) {
      for (int q = 0; q < W; ++q) {
        double sum = 0;
        for (int c = 0; c < C; ++c) {
          for (int rs = 0; rs < 9; ++rs) {
            const int h = p + rs / 3 - 1, v = q + rs % 3 - 1;
            if (h < 0 || h >= H || v < 0 || v >= W) continue;
            sum += static_cast<double>(t.w[(k * C + c) * 9 + rs]) * t.x[(c * H + h) * W + v];
          }
        }
        y[(k * H + p) * W + q] = static_cast<float>(sum);
      }
    }
  }
  return y;
}

/// The bits of a value that f16 has as a normal number, or of 0.
uint16_t half_of(float x) {
  if (x == 0) return 0;
  const int exponent = std::ilogb(x);
  const auto fraction = static_cast<int>(std::ldexp(std::abs(x), 10 - exponent)) - 1024;
  return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) + ((exponent + 15) << 10) + fraction);
}

float value_of(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 0x3FF;
  if (exponent == 31) return NAN;  // infinity is no result either
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// [outer][channels][inner] to [outer][inner][channels].
std::vector<uint16_t> halves_channels_last(const std::vector<float>& from, size_t channels, size_t inner) {
  std::vector<uint16_t> to(from.size());
  for (size_t k = 0; k < from.size(); ++k) {
    const size_t outer = k / (channels * inner), channel = k / inner % channels;
    to[(outer * inner + k % inner) * channels + channel] = half_of(from[k]);
  }
  return to;
}

/// A tensor as full checks see allocations: it is known of every byte whether it has been written, and who touched it.
struct Tracking {
  std::vector<uint8_t> written;
  std::vector<PieceMarks> marks;

  Region region_of(std::span<const std::byte> memory, std::string name) {
    const auto begin = reinterpret_cast<uint64_t>(memory.data());
    written.assign(memory.size(), 1);
    marks.resize(written.size());
    return {begin, begin + written.size(), std::move(name), written.data(), marks.data()};
  }
};

struct Level {
  CheckLevel check;
  const char* name;
};
constexpr Level all_levels[] = {{CheckLevel::off, "off"}, {CheckLevel::bounds, "bounds"}, {CheckLevel::full, "full"}};

/// Choice of the arguments: by default, everything.
struct Choice {
  std::vector<std::string> kernels;
  std::vector<Level> levels;
};

Choice choice_of(const std::vector<std::string>& arguments) {
  Choice choice;
  for (const std::string& argument : arguments) {
    const auto level = std::find_if(std::begin(all_levels), std::end(all_levels),
                                    [&](const Level& known) { return known.name == argument; });
    if (level != std::end(all_levels)) {
      choice.levels.push_back(*level);
    } else if (std::find(kernels.begin(), kernels.end(), argument) != kernels.end()) {
      choice.kernels.push_back(argument);
    } else {
      throw std::runtime_error("'" + argument +
                               "' is no kernel (conv_naive, conv_simt_8x8, conv_mma_f16) and no level "
                               "of checks (off, bounds, full)");
    }
  }
  if (choice.kernels.empty()) choice.kernels.assign(kernels.begin(), kernels.end());
  if (choice.levels.empty()) choice.levels.assign(std::begin(all_levels), std::end(all_levels));
  return choice;
}

/// Infinite where there is no result.
double distance(float result, float expected) {
  return std::isfinite(result) ? std::abs(static_cast<double>(result) - expected) : HUGE_VAL;
}

/// CPU seconds of one launch.
double seconds_of(const LaunchRequest& request) {
  const double start = kiln::bench::thread_seconds();
  const LaunchOutcome outcome = run(request);
  const double taken = kiln::bench::thread_seconds() - start;
  if (outcome.fault) throw std::runtime_error(outcome.fault->report);
  return taken;
}

/// The memory of x, w and y.
using Operands = std::array<std::span<std::byte>, 3>;

template <class T>
Operands operands_of(std::vector<T>& x, std::vector<T>& w, std::vector<T>& y) {
  const auto bytes = [](std::vector<T>& values) { return std::as_writable_bytes(std::span(values)); };
  return {bytes(x), bytes(w), bytes(y)};
}

class Benchmark {
 public:
  Benchmark(const kiln::device::Nvrtc& nvrtc, Choice choice, double peak)
      : nvrtc_(nvrtc), choice_(std::move(choice)), peak_(peak), expected_(host_convolution(t_)) {}

  void run_all() {
    const Operands floats = operands_of(t_.x, t_.w, t_.y);
    const auto element = [&](size_t i) { return t_.y[i]; };
    run("conv_naive", {(H * W + 127) / 128, K}, floats, element);
    run("conv_simt_8x8", {(H * W + 127) / 128, K / 64}, floats, element);
    std::vector<uint16_t> x = halves_channels_last(t_.x, C, H * W), w = halves_channels_last(t_.w, C, 9);
    std::vector<uint16_t> y(t_.y.size());
    run("conv_mma_f16", {(H * W + 127) / 128, K / 64}, operands_of(x, w, y),
        [&](size_t i) { return value_of(y[i % (H * W) * K + i / (H * W)]); });
  }

 private:
  /// Times a kernel at all levels of checks. `element`: of the result, in the order of `expected_`.
  void run(const std::string& name, Dim3 grid, const Operands& operands,
           const std::function<float(size_t)>& element) const {
    if (std::find(choice_.kernels.begin(), choice_.kernels.end(), name) == choice_.kernels.end()) return;
    kiln::device::CompileOptions options;
    options.arch = "compute_90";
    const auto program = load_program(nvrtc_.compile(kernel_source(name), name + ".cu", options).ptx);
    std::array<uint64_t, 3> parameters{};
    std::array<Tracking, 3> tracking;
    std::vector<Region> regions;
    for (size_t k = 0; k < operands.size(); ++k) {
      parameters[k] = reinterpret_cast<uint64_t>(operands[k].data());
      regions.push_back(tracking[k].region_of(operands[k], std::string(1, "xwy"[k])));
    }
    LaunchRequest request;
    request.kernel = find_kernel(*program, name);
    request.grid = grid;
    request.block = {128};
    request.parameters = std::as_bytes(std::span(parameters));
    request.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = std::move(regions)});
    request.counted_blocks = 1;
    std::fill(operands[2].begin(), operands[2].end(), std::byte{0xFF});  // NaN
    std::vector<double> best(choice_.levels.size(), HUGE_VAL);
    for (int round = 0; round < repeats; ++round) {  // in turn, so that what else the machine does meets all alike
      for (size_t k = 0; k < best.size(); ++k) {
        request.check = choice_.levels[k].check;
        ++request.number;
        best[k] = std::min(best[k], seconds_of(request));
      }
    }
    double worst = 0;
    for (size_t i = 0; i < expected_.size(); ++i) worst = std::max(worst, distance(element(i), expected_[i]));
    print(name, best, worst);
    if (worst > largest_error) throw std::runtime_error(name + " is wrong");
  }

  void print(const std::string& name, const std::vector<double>& seconds, double worst) const {
    for (size_t k = 0; k < seconds.size(); ++k) {
      const double rate = flops / seconds[k] * 1e-9;
      std::printf("%-14s  checks %-6s  %8.2f ms  %7.2f GFLOP/s  %5.1f%% of peak  %5.2fx %s  largest error %.1e\n",
                  name.c_str(), choice_.levels[k].name, seconds[k] * 1e3, rate, 100 * rate / peak_,
                  seconds[k] / seconds[0], choice_.levels[0].name, worst);
    }
  }

  const kiln::device::Nvrtc& nvrtc_;
  Choice choice_;
  double peak_;
  Tensors t_;
  std::vector<float> expected_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Choice choice = choice_of({argv + 1, argv + argc});
    kiln::device::NvrtcChoice library;
    if (const char* const given = std::getenv("KILN_NVRTC")) library.library = given;
    const auto nvrtc = kiln::device::Nvrtc::open(library);
    const double peak = kiln::bench::fma_peak_gflops();
    std::printf("Convolution 1x%dx%dx%d -> %d, 3x3, padding 1 (%.3f GFLOP), one host thread, units '%s'.\n", C, H, W, K,
                flops * 1e-9, unit_table().name);
    std::printf(
        "CPU time of the thread, fastest of %d launches of each level in turn. Peak: independent f32 FMAs in registers "
        "with the widest vectors of this core, fastest of 5 runs in this process: %.1f GFLOP/s.\n",
        repeats, peak);
    Benchmark(*nvrtc, choice, peak).run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulator benchmark: %s\n", error.what());
    return 1;
  }
  return 0;
}
