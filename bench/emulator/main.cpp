// How fast the emulator's execution core runs SIMT convolutions, as a share of what this core's FMA units can do.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
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

std::string kernel_source(const std::string& name) {
  std::ifstream file(std::string(KILN_BENCH_KERNELS) + "/" + name + ".cu");
  if (!file) throw std::runtime_error("cannot open the kernel " + name);
  std::stringstream text;
  text << "constexpr int C = " << C << ", H = " << H << ", W = " << W << ", K = " << K << ";\n" << file.rdbuf();
  return text.str();
}

std::vector<float> random_values(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
  std::vector<float> values(n);
  for (float& v : values) v = draw(engine);
  return values;
}

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

/// A tensor as full checks see allocations: it is known of every byte whether it has been written, and who touched it.
struct Tracking {
  std::vector<uint8_t> written;
  std::vector<PieceMarks> marks;

  Region region_of(const std::vector<float>& values, std::string name) {
    const auto begin = reinterpret_cast<uint64_t>(values.data());
    written.assign(values.size() * sizeof(float), 1);
    marks.resize(written.size());
    return {begin, begin + written.size(), std::move(name), written.data(), marks.data()};
  }
};

struct Level {
  CheckLevel check;
  const char* name;
};
constexpr Level levels[] = {{CheckLevel::off, "off"}, {CheckLevel::bounds, "bounds"}, {CheckLevel::full, "full"}};

/// CPU seconds of one launch.
double seconds_of(const LaunchRequest& request) {
  const double start = kiln::bench::thread_seconds();
  const LaunchOutcome outcome = run(request);
  const double taken = kiln::bench::thread_seconds() - start;
  if (outcome.fault) throw std::runtime_error(outcome.fault->report);
  return taken;
}

void report(const kiln::device::Nvrtc& nvrtc, const std::string& name, Dim3 grid, const std::vector<float>& expected,
            Tensors& t, double peak) {
  kiln::device::CompileOptions options;
  options.arch = "compute_90";
  const auto program = load_program(nvrtc.compile(kernel_source(name), name + ".cu", options).ptx);
  const uint64_t parameters[] = {reinterpret_cast<uint64_t>(t.x.data()), reinterpret_cast<uint64_t>(t.w.data()),
                                 reinterpret_cast<uint64_t>(t.y.data())};
  LaunchRequest request;
  request.kernel = find_kernel(*program, name);
  request.grid = grid;
  request.block = {128};
  request.parameters = std::as_bytes(std::span(parameters));
  Tracking tracking[3];
  request.memory = std::make_shared<RegionTable>(std::vector<Region>{
      tracking[0].region_of(t.x, "x"), tracking[1].region_of(t.w, "w"), tracking[2].region_of(t.y, "y")});
  request.counted_blocks = 1;
  double best[std::size(levels)] = {1e30, 1e30, 1e30};
  std::fill(t.y.begin(), t.y.end(), NAN);
  for (int round = 0; round < repeats; ++round) {  // in turn, so that what else the machine does meets all alike
    for (size_t k = 0; k < std::size(levels); ++k) {
      request.check = levels[k].check;
      ++request.number;
      best[k] = std::min(best[k], seconds_of(request));
    }
  }
  double worst = 0;
  for (size_t i = 0; i < t.y.size(); ++i) worst = std::fmax(worst, std::abs(t.y[i] - expected[i]));
  for (size_t k = 0; k < std::size(levels); ++k) {
    const double rate = flops / best[k] * 1e-9;
    std::printf("%-14s  checks %-6s  %8.2f ms  %7.2f GFLOP/s  %5.1f%% of peak  %5.2fx off  largest error %.1e\n",
                name.c_str(), levels[k].name, best[k] * 1e3, rate, 100 * rate / peak, best[k] / best[0], worst);
  }
}

}  // namespace

int main() {
  try {
    kiln::device::NvrtcChoice choice;
    if (const char* const given = std::getenv("KILN_NVRTC")) choice.library = given;
    const auto nvrtc = kiln::device::Nvrtc::open(choice);
    const double peak = kiln::bench::fma_peak_gflops();
    std::printf("Convolution 1x%dx%dx%d -> %d, 3x3, padding 1 (%.3f GFLOP), one host thread, units '%s'.\n", C, H, W, K,
                flops * 1e-9, unit_table().name);
    std::printf(
        "CPU time of the thread, fastest of %d launches of each level in turn. Peak: independent f32 FMAs in registers "
        "with the widest vectors of this core, fastest of 5 runs in this process: %.1f GFLOP/s.\n",
        repeats, peak);
    Tensors t;
    const std::vector<float> expected = host_convolution(t);
    report(*nvrtc, "conv_naive", {(H * W + 127) / 128, K}, expected, t, peak);
    report(*nvrtc, "conv_simt_8x8", {(H * W + 127) / 128, K / 64}, expected, t, peak);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulator benchmark: %s\n", error.what());
    return 1;
  }
  return 0;
}
