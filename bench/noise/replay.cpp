#include "replay.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "kiln/tuner/device_timer.h"

namespace kiln::bench {
namespace {

constexpr size_t block = 8;
constexpr double least_period = 1000, most_period = 4000;  // of the drift, runs

}  // namespace

ReplayDevice::ReplayDevice(std::vector<const SampledRow*> rows, const Noise& noise, uint64_t seed)
    : rows_(std::move(rows)), places_(rows_.size()), noise_(noise), dice_(seed), last_(rows_.size()) {
  phase_ = 2 * std::numbers::pi * dice_.share();
  period_ = least_period + (most_period - least_period) * dice_.share();
}

// How much slower than its rows say the device is now.
double ReplayDevice::pace() {
  if (dice_.share() < noise_.steps_per_run) step_ = std::pow(noise_.largest_step, dice_.share());
  const double angle = phase_ + 2 * std::numbers::pi * static_cast<double>(runs_) / period_;
  const double blip = dice_.share() < noise_.blips_per_run ? std::pow(noise_.largest_blip, dice_.share()) : 1;
  const double jitter = 1 - noise_.jitter * std::log(1 - dice_.share());
  return step_ * blip * jitter * (1 + noise_.drift * std::sin(angle));
}

double ReplayDevice::run(size_t candidate) {
  const std::vector<double>& samples = rows_[candidate]->samples;
  const double factor = pace();
  double seconds = samples.front();
  if (last_ == candidate) {
    Place& place = places_[candidate];
    if (place.left == 0) place = {1 + dice_.below(samples.size() - 1), block};
    seconds = samples[place.next];
    place.next = place.next + 1 == samples.size() ? 1 : place.next + 1;
    --place.left;
  }
  last_ = candidate;
  ++runs_;
  seconds *= factor;
  seconds_ += seconds;
  return seconds;
}

ReplayLaboratory::ReplayLaboratory(ReplayDevice& device, uint64_t seed) : device_(device), dice_(seed) {
  apparatus_.device.name = "Replay";
  apparatus_.device.cc_major = 8;
  apparatus_.figures = {.sms = 108, .clock_hz = 1.41e9, .dram_bytes_per_second = 1.555e12, .l2_bytes = 40 << 20};
  apparatus_.target = {.arch = Arch::of(8, 0), .nvrtc_major = 13, .nvrtc_minor = 0};
  apparatus_.driver_version = apparatus_.nvrtc_version = "13.0";
}

void ReplayLaboratory::submit(tuner::SpecimenId id, const tuner::Programs& programs) {
  candidates_[id] = std::stoul(programs.program.sources.front().code);
  submitted_.push_back(id);
}

std::optional<tuner::CompileReport> ReplayLaboratory::collect(double) {
  if (submitted_.empty()) return std::nullopt;
  const auto which = submitted_.begin() + static_cast<std::ptrdiff_t>(dice_.below(submitted_.size()));
  tuner::CompileReport report;
  report.id = *which;
  submitted_.erase(which);
  return report;
}

// As DeviceTimer does.
tuner::SampleReport ReplayLaboratory::sample(tuner::SpecimenId id, int count) {
  const size_t candidate = candidates_.at(id);
  for (int i = 0; i < tuner::DeviceTimer::warm_up_runs; ++i) device_.run(candidate);
  tuner::SampleReport report;
  for (int i = 0; i < count; ++i) report.seconds.push_back(device_.run(candidate));
  samples_ += report.seconds.size();
  return report;
}

}  // namespace kiln::bench
