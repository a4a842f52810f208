#include "kiln/tuner/device_timer.h"

#include <utility>

namespace kiln::tuner {

DeviceTimer::DeviceTimer(std::shared_ptr<const device::ContextHandle> context)
    : context_(std::move(context)), stream_(context_), start_(context_), end_(context_) {}

void DeviceTimer::flush_l2() {
  const device::DeviceInfo& info = context_->device().info();
  // On an emulated device the smallest fill makes L2 cold.
  const size_t bytes = info.emulated ? 4 : 2 * static_cast<size_t>(info.l2_bytes);
  if (flush_.size() == 0) flush_ = device::Buffer(context_, bytes);
  device::fill_words(*context_, flush_.address(), 0, flush_.size() / 4, stream_.raw());
}

std::vector<double> DeviceTimer::time(const checking::DeviceOperands& operands, const checking::Checkable& variant,
                                      int count, L2 l2) {
  const device::Buffer workspace(context_, static_cast<size_t>(variant.workspace_bytes));
  const auto run = [&] { operands.run(variant, operands.request().batch(), workspace.address(), stream_.raw()); };
  std::vector<double> samples;
  operands.prepare(variant, workspace.address(), stream_.raw());
  const bool emulated = context_->device().info().emulated;
  if (emulated) flush_l2();  // weights are prepared long before
  for (int i = 0; !emulated && i < warm_up_runs; ++i) run();
  for (int i = 0; i < count; ++i) {
    if (l2 == L2::cold) flush_l2();
    start_.record(stream_.raw());
    run();
    end_.record(stream_.raw());
    end_.synchronize();
    samples.push_back(end_.elapsed_ms(start_) / 1e3);
  }
  return samples;
}

std::string DeviceTimer::launches_json(const checking::DeviceOperands& operands, const checking::Checkable& variant,
                                       uint64_t traced_instructions) {
  const device::Current current(*context_);
  const device::Buffer workspace(context_, static_cast<size_t>(variant.workspace_bytes));
  operands.prepare(variant, workspace.address(), stream_.raw());
  flush_l2();
  stream_.synchronize();
  (void)context_->driver().launches_json();  // of what came before
  context_->driver().trace_launches(traced_instructions);
  operands.run(variant, operands.request().batch(), workspace.address(), stream_.raw());
  stream_.synchronize();
  context_->driver().trace_launches(0);
  return context_->driver().launches_json();
}

}  // namespace kiln::tuner
