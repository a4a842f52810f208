#include "trusted_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace kiln::checking {

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

TrustedRun::TrustedRun(std::shared_ptr<const device::ContextHandle> context, const execution::Executable& trusted,
                       std::vector<std::string> names, const std::vector<Memory>& contents, int64_t n)
    : context_(std::move(context)),
      trusted_(trusted),
      names_(std::move(names)),
      n_(n),
      workspace_(context_, static_cast<size_t>(trusted.workspace_bytes())),
      stream_(context_) {
  for (const Memory& content : contents) buffers_.push_back(device::upload(context_, content));
}

size_t TrustedRun::place_of(const std::string& name) const {
  return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

void TrustedRun::run(size_t first, size_t count, const RunValues& values) {
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (const device::Buffer& buffer : buffers_) addresses.push_back(buffer.address());
  trusted_.run_part(stream_.raw(), addresses, values, n_, workspace_.address(), first, count);
  stream_.synchronize();
}

std::vector<float> TrustedRun::slack(const reference::SlackCall& call, const std::string& result) {
  for (const auto& [name, content] : call.operands) put(name, content);
  run(1, trusted_.steps() - 2, call.values);
  std::vector<float> slack = floats_of(get(result));
  const auto wider = static_cast<float>(1 + call.error);
  for (float& distance : slack) {
    distance = std::isnan(distance) ? std::numeric_limits<float>::infinity() : std::fabs(distance) * wider;
  }
  return slack;
}

void TrustedRun::put(const std::string& name, const Memory& content) {
  device::copy_to_device(*context_, buffers_[place_of(name)].address(), content.data(), content.size());
}

TrustedRun::Memory TrustedRun::get(const std::string& name) const {
  const device::Buffer& buffer = buffers_[place_of(name)];
  return device::download<std::byte>(*context_, buffer.address(), buffer.size());
}

}  // namespace kiln::checking
