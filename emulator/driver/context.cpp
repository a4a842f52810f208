#include "context.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace kiln::emulator {

Context::Context(Device& device, CUcontext handle, AddressSpace& host_memory, AddressSpace::Fresh fresh)
    : device_(device),
      handle_(handle),
      host_memory_(host_memory),
      memory_(device.model.limits.memory_bytes, "allocation", fresh),
      legacy_(std::make_shared<Stream>()) {}

bool Context::set_fault(CUresult error, std::string report) {
  const std::lock_guard lock(mutex_);
  if (error_ != CUDA_SUCCESS) return false;
  std::fprintf(stderr, "kiln emulator: %s\n", report.c_str());
  fault_ = std::move(report);
  error_ = error;
  return true;
}

std::string Context::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

std::shared_ptr<Stream> Context::make_stream(const std::shared_ptr<Context>& self, unsigned flags) const {
  auto stream = std::make_shared<Stream>();
  stream->context = self;
  stream->flags = flags;
  if ((flags & CU_STREAM_NON_BLOCKING) == 0) stream->track->legacy = legacy_->track;
  return stream;
}

std::shared_ptr<Stream> Context::per_thread_stream(const std::shared_ptr<Context>& self) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Stream>& stream = per_thread_[std::this_thread::get_id()];
  if (stream == nullptr) stream = make_stream(self, CU_STREAM_DEFAULT);
  return stream;
}

bool Context::is_valid(uint64_t address, uint64_t bytes) const {
  return memory_.contains(address, bytes) || host_memory_.contains(address, bytes);
}

std::shared_ptr<const RegionTable> Context::regions() const {
  const std::lock_guard lock(mutex_);
  if (regions_ == nullptr || regions_version_ != memory_.version() || regions_host_version_ != host_memory_.version()) {
    RegionTable::Contents contents;
    regions_version_ = memory_.list(contents);
    regions_host_version_ = host_memory_.list(contents);
    regions_ = std::make_shared<const RegionTable>(std::move(contents));
  }
  return regions_;
}

void Context::add_launch(LaunchRecord record) {
  constexpr size_t most = 256;
  const std::lock_guard lock(mutex_);
  launches_.push_back(std::move(record));
  if (launches_.size() > most) {
    launches_.pop_front();
    taken_launches_ = 0;
  }
}

std::optional<LaunchRecord> Context::last_launch() const {
  const std::lock_guard lock(mutex_);
  return launches_.empty() ? std::nullopt : std::optional(launches_.back());
}

std::string Context::not_timed() const {
  const std::lock_guard lock(mutex_);
  const auto latest = std::find_if(launches_.rbegin(), launches_.rend(),
                                   [](const LaunchRecord& record) { return !record.seconds().has_value(); });
  return latest == launches_.rend() ? "" : latest->not_timed();
}

std::vector<LaunchRecord> Context::take_launches() {
  const std::lock_guard lock(mutex_);
  std::vector<LaunchRecord> taken(launches_.begin() + static_cast<std::ptrdiff_t>(taken_launches_), launches_.end());
  if (!launches_.empty()) launches_.erase(launches_.begin(), launches_.end() - 1);
  taken_launches_ = launches_.size();
  return taken;
}

}  // namespace kiln::emulator
