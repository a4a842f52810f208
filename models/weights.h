// Weights: the memory of a model that runs only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/memory.h"

namespace kiln::models {

/// Memory on the device by digests of what it holds, so that all batches of a model share what they have in common.
/// Not thread-safe.
class Weights {
 public:
  /// Where that content is; null if it is not here.
  std::byte* find(const std::string& digest) const {
    const auto found = places_.find(digest);
    return found == places_.end() ? nullptr : found->second;
  }

  /// Takes memory that is filled, and the offsets of what lies in it.
  void add(DeviceMemory memory, const std::map<std::string, int64_t>& offsets) {
    bytes_ += static_cast<int64_t>(memory.size());
    for (const auto& [digest, offset] : offsets) places_[digest] = static_cast<std::byte*>(memory.data()) + offset;
    blocks_.push_back(std::move(memory));
  }

  int64_t bytes() const { return bytes_; }

 private:
  std::vector<DeviceMemory> blocks_;
  std::map<std::string, std::byte*> places_;
  int64_t bytes_ = 0;
};

}  // namespace kiln::models
