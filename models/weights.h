// Weights: the memory of a model that runs only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/memory.h"

namespace kiln::models {

/// Memory that goes when the last instance of a model that reads it does.
using SharedMemory = std::shared_ptr<const DeviceMemory>;

/// Memory on the device by digests of what it holds, so that all instances of a model share what they have in common.
/// Not thread-safe.
class Weights {
 public:
  struct Place {
    std::byte* at = nullptr;
    SharedMemory memory;
  };

  /// Where that content is; null if it is not here.
  Place find(const std::string& digest) const {
    const auto found = places_.find(digest);
    if (found == places_.end()) return {};
    SharedMemory memory = found->second.memory.lock();
    return memory == nullptr ? Place{} : Place{found->second.at, std::move(memory)};
  }

  /// Knows memory that is filled, and the offsets of what lies in it.
  void add(const SharedMemory& memory, const std::map<std::string, int64_t>& offsets) {
    std::erase_if(places_, [](const auto& place) { return place.second.memory.expired(); });
    std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
    for (const auto& [digest, offset] : offsets) {
      places_[digest] = {static_cast<std::byte*>(memory->data()) + offset, memory};
    }
    blocks_.push_back(memory);
  }

  /// Size of all memory that an instance reads.
  int64_t bytes() const {
    size_t bytes = 0;
    for (const auto& block : blocks_) {
      if (const SharedMemory memory = block.lock()) bytes += memory->size();
    }
    return static_cast<int64_t>(bytes);
  }

 private:
  struct Known {
    std::byte* at = nullptr;
    std::weak_ptr<const DeviceMemory> memory;
  };

  std::map<std::string, Known> places_;
  std::vector<std::weak_ptr<const DeviceMemory>> blocks_;
};

}  // namespace kiln::models
