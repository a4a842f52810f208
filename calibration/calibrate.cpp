#include "kiln/calibration/calibrate.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels.h"
#include "kiln/device/arch.h"
#include "kiln/device/event.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/device/module.h"
#include "kiln/device/stream.h"
#include "kiln/execution/target.h"
#include "kiln/generator/arch.h"

namespace kiln::calibration {
namespace {

constexpr unsigned threads = 256;
constexpr int64_t access_bytes = 16;
constexpr int blocks_per_sm = 8;  // 2048 threads: what most SMs hold

device::Module load(const std::shared_ptr<const device::ContextHandle>& context, const device::Nvrtc& nvrtc) {
  const device::DeviceInfo& info = context->device().info();
  device::CompileOptions options;
  options.arch = device::real_arch(info.cc_major, info.cc_minor);
  const device::Compiled compiled = nvrtc.compile(kernels_source, "calibration.cu", options);
  return {context, compiled.image(context->driver()), "calibration"};
}

// The instruments: one device, its kernels and a clock.
class Instruments {
 public:
  /// `reduced`: with a part of the work, once.
  Instruments(std::shared_ptr<const device::ContextHandle> context, const device::Module& module, bool reduced)
      : context_(std::move(context)),
        info_(context_->device().info()),
        module_(module),
        reduced_(reduced),
        stream_(context_),
        start_(context_),
        stop_(context_),
        blocks_(static_cast<unsigned>(info_.sms * blocks_per_sm)) {}

  const device::DeviceInfo& info() const { return info_; }
  double all_threads() const { return static_cast<double>(blocks_) * threads; }
  bool reduced() const { return reduced_; }
  int64_t work(int64_t whole) const { return reduced_ ? std::max<int64_t>(1, whole / 32) : whole; }
  /// At most an eighth of the device's memory.
  int64_t bytes(int64_t wanted) const {
    const int64_t most = static_cast<int64_t>(info_.memory_bytes / 8);
    return std::min(most, wanted) / (access_bytes * 4) * access_bytes * 4;
  }
  device::Buffer zeros(int64_t size) const {
    device::Buffer buffer(context_, static_cast<size_t>(size));
    device::fill_words(*context_, buffer.address(), 0, buffer.size() / 4, stream_.raw());
    return buffer;
  }

  unsigned blocks() const { return blocks_; }  ///< As many as run at the same time.

  /// Device seconds of a kernel, median.
  template <class... Arguments>
  double seconds(const char* kernel, unsigned blocks, Arguments... arguments) const {
    return seconds([] {}, kernel, blocks, 1, arguments...);
  }
  /// The same of `launches` launches in a row, behind a fill of `ahead`: meanwhile the host enqueues them.
  double seconds_behind(const device::Buffer& ahead, const char* kernel, unsigned blocks, int launches) const {
    return seconds([&] { device::fill_words(*context_, ahead.address(), 0, ahead.size() / 4, stream_.raw()); }, kernel,
                   blocks, launches);
  }

 private:
  template <class Before, class... Arguments>
  double seconds(const Before& before, const char* kernel, unsigned blocks, int launches,
                 Arguments... arguments) const {
    const device::Function function = module_.function(kernel);
    const device::Current current(*context_);
    void* parameters[] = {static_cast<void*>(&arguments)..., nullptr};
    const auto run = [&] {
      before();
      start_.record(stream_.raw());
      for (int i = 0; i < launches; ++i) device::launch(function, {blocks}, {threads}, 0, stream_.raw(), parameters);
      stop_.record(stream_.raw());
      stop_.synchronize();
      return stop_.elapsed_ms(start_) * 1e-3;
    };
    if (info_.emulated) return run();  // it always takes as long
    run();
    std::vector<double> samples(9);
    std::generate(samples.begin(), samples.end(), run);
    std::nth_element(samples.begin(), samples.begin() + 4, samples.end());
    return samples[4];
  }

  std::shared_ptr<const device::ContextHandle> context_;
  const device::DeviceInfo& info_;
  const device::Module& module_;
  bool reduced_;
  device::Stream stream_;
  device::Event start_, stop_;
  unsigned blocks_;
};

double copy_rate(const Instruments& instruments) {
  const int64_t bytes = instruments.bytes(instruments.work(int64_t{1} << 31) / 2);
  const device::Buffer in = instruments.zeros(bytes), out = instruments.zeros(bytes);
  const double seconds = instruments.seconds("copy_memory", instruments.blocks(), in.address(), out.address(),
                                             int64_t{bytes / access_bytes});
  return 2 * static_cast<double>(bytes) / seconds;
}

FootprintRate read_rate(const Instruments& instruments, double share_of_l2) {
  const int64_t wanted = instruments.bytes(static_cast<int64_t>(share_of_l2 * instruments.info().l2_bytes));
  const int64_t block_bytes = threads * access_bytes, most_span = instruments.blocks() * block_bytes;
  const int64_t spans = (wanted + most_span - 1) / most_span;
  const int64_t span = std::max<int64_t>(1, wanted / spans / block_bytes) * block_bytes, bytes = spans * span;
  const double round_bytes = 4 * access_bytes * instruments.all_threads();
  // Enough to go round the buffer several times. A buffer larger than L2 misses there from the first time on.
  const double times = instruments.reduced() && share_of_l2 > 1 ? 1 : 3;
  const auto least = static_cast<int64_t>(times * static_cast<double>(bytes) / round_bytes) + 1;
  const int64_t rounds = std::max(least, instruments.work(256));
  const device::Buffer in = instruments.zeros(bytes),
                       out = instruments.zeros(static_cast<int64_t>(4 * instruments.all_threads()));
  const double seconds = instruments.seconds("read_memory", instruments.blocks(), in.address(), out.address(),
                                             static_cast<uint32_t>(bytes / access_bytes),
                                             static_cast<uint32_t>(span / access_bytes), rounds);
  return {bytes, round_bytes * static_cast<double>(rounds) / seconds};
}

double fma_rate(const Instruments& instruments) {
  const int64_t rounds = instruments.work(1024);
  const device::Buffer out = instruments.zeros(static_cast<int64_t>(4 * instruments.all_threads()));
  const double seconds = instruments.seconds("multiply_add", instruments.blocks(), out.address(), 0.5F, 1.0F, rounds);
  return 2 * 16 * 8 * static_cast<double>(rounds) * instruments.all_threads() / seconds;
}

double shared_rate(const Instruments& instruments) {
  const int64_t rounds = instruments.work(1024);
  const device::Buffer out = instruments.zeros(static_cast<int64_t>(4 * instruments.all_threads()));
  const double seconds = instruments.seconds("read_shared", instruments.blocks(), out.address(), rounds);
  return 8 * access_bytes * static_cast<double>(rounds) * instruments.all_threads() / seconds;
}

// A kernel for tensor cores, and its multiply-adds by product of a warp.
struct TensorKernel {
  const char* name;
  std::string_view factors, sums;
  MathClass math;
  int multiply_adds;
  int least_major, least_minor;
};

constexpr TensorKernel tensor_kernels[] = {
    {"multiply_f16", "f16", "f32", MathClass::tensor_f16, 16 * 8 * 16, 7, 5},
    {"multiply_f16_in_f16", "f16", "f16", MathClass::tensor_f16_sums, 16 * 8 * 16, 7, 5},
    {"multiply_tf32", "tf32", "f32", MathClass::tensor_tf32, 16 * 8 * 8, 8, 0},
    {"multiply_int8", "int8", "i32", MathClass::tensor_int8, 16 * 8 * 32, 7, 5},
    {"multiply_fp8", "fp8", "f32", MathClass::tensor_fp8, 16 * 8 * 32, 8, 9},
};

double tensor_rate(const Instruments& instruments, const TensorKernel& kernel) {
  const int64_t rounds = instruments.work(1024);
  const device::Buffer out = instruments.zeros(static_cast<int64_t>(4 * instruments.all_threads()));
  const double seconds = instruments.seconds(kernel.name, instruments.blocks(), out.address(), rounds);
  const double warps = instruments.all_threads() / 32;
  return 2.0 * kernel.multiply_adds * 8 * static_cast<double>(rounds) * warps / seconds;
}

std::vector<TensorRate> tensor_rates(const Instruments& instruments, const device::NvrtcVersion& nvrtc) {
  std::vector<TensorRate> rates;
  const Arch arch = Arch::of(instruments.info().cc_major, instruments.info().cc_minor);
  const DeviceFigures nominal = execution::figures_of(instruments.info());
  for (const TensorKernel& kernel : tensor_kernels) {
    if (!arch.at_least(kernel.least_major, kernel.least_minor)) continue;
    if (kernel.math == MathClass::tensor_fp8 && nvrtc < device::NvrtcVersion{12, 4}) continue;
    const double rate = tensor_rate(instruments, kernel);
    const double peak = 2 * arch.products_per_clock(kernel.math) * nominal.sms * nominal.clock_hz;
    rates.push_back({kernel.factors, kernel.sums, kernel.math, rate, rate / peak});
  }
  return rates;
}

double launch_seconds(const Instruments& instruments) {
  constexpr int launches = 200;
  // A millisecond or more, which is longer than a host needs to enqueue them. A modelled host needs no time.
  const int64_t ahead = instruments.info().emulated ? 64 : int64_t{1} << 33;
  return instruments.seconds_behind(instruments.zeros(instruments.bytes(ahead)), "do_nothing", 1, launches) / launches;
}

// The findings as shares of the nominal figures.
Calibration calibration_of(const Findings& findings, const device::DeviceInfo& info) {
  const DeviceFigures nominal = execution::figures_of(info);
  const Arch arch = Arch::of(info.cc_major, info.cc_minor);
  const double clocks = nominal.sms * nominal.clock_hz;  // of all SMs, per second
  Calibration calibration;
  calibration.copy_efficiency = findings.copy_bytes_per_second / nominal.dram_bytes_per_second;
  calibration.l2_bytes_per_clock = findings.l2_bytes_per_second / clocks;
  calibration.fma_efficiency = findings.fma_flops_per_second / (2 * arch.f32_lanes_per_sm * clocks);
  calibration.shared_efficiency = findings.shared_bytes_per_second / (128 * clocks);
  calibration.launch_seconds = findings.launch_seconds;
  for (const TensorRate& rate : findings.tensor) {
    calibration.*Calibration::share_of(rate.math) = rate.share;
  }
  return calibration;
}

Findings measure(const Instruments& instruments, const device::NvrtcVersion& nvrtc) {
  Findings findings;
  findings.launch_seconds = launch_seconds(instruments);
  findings.fma_flops_per_second = fma_rate(instruments);
  findings.shared_bytes_per_second = shared_rate(instruments);
  for (const double share : {0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0}) {
    findings.reads.push_back(read_rate(instruments, share));
    if (share == 0.25) findings.l2_bytes_per_second = findings.reads.back().bytes_per_second;
  }
  findings.copy_bytes_per_second = copy_rate(instruments);
  if (!instruments.reduced()) findings.tensor = tensor_rates(instruments, nvrtc);
  findings.calibration = calibration_of(findings, instruments.info());
  return findings;
}

}  // namespace

Findings calibrate(const std::shared_ptr<const device::ContextHandle>& context, const device::Nvrtc& nvrtc) {
  device::require_driver_for(nvrtc, context->driver());
  const device::Module module = load(context, nvrtc);
  // An emulated device that has to run what it times does so on the host: it gets a part of the work.
  if (auto findings = device::timed_only(context, [&] { return measure({context, module, false}, nvrtc.version()); })) {
    return *findings;
  }
  return measure({context, module, context->device().info().emulated}, nvrtc.version());
}

}  // namespace kiln::calibration
