#include "host_memory.h"

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/stream.h"

namespace kiln::python {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
};

// Tensors may share memory (a result in place), and memory is registered once.
std::vector<Range> ranges_of(std::span<const GivenTensor> tensors) {
  std::vector<Range> ranges;
  for (const GivenTensor& given : tensors) {
    if (!given.place.host || given.tensor.empty()) continue;
    const TensorSpec spec = given.tensor.spec();
    const auto begin = reinterpret_cast<uintptr_t>(given.tensor.data());
    const int64_t bytes = spec.span() * size_of(spec.dtype);
    ranges.push_back({begin, begin + static_cast<uintptr_t>(bytes)});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  std::vector<Range> apart;
  for (const Range& range : ranges) {
    if (!apart.empty() && range.begin < apart.back().end) {
      apart.back().end = std::max(apart.back().end, range.end);
    } else {
      apart.push_back(range);
    }
  }
  return apart;
}

std::mutex& one_call() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

HostTensors::HostTensors(Context& context, std::span<const GivenTensor> tensors) {
  const std::vector<Range> ranges = ranges_of(tensors);
  if (ranges.empty()) return;
  alone_ = std::unique_lock(one_call());
  for (const Range& range : ranges) {
    registered_.emplace_back(context, reinterpret_cast<void*>(range.begin), range.end - range.begin);
  }
}

void HostTensors::release() {
  for (RegisteredMemory& each : registered_) each.release();
}

OtherStreams::OtherStreams(Context& context, const Streams& streams, std::span<const GivenTensor> tensors)
    : context_(context), own_(reinterpret_cast<Stream>(streams.first)) {
  const auto add = [&](uintptr_t address) {
    const auto other = reinterpret_cast<Stream>(address);
    if (std::ranges::find(others_, other) == others_.end()) others_.push_back(other);
  };
  for (const uintptr_t address : streams.second) add(address);
  for (const GivenTensor& given : tensors) {
    if (given.stream) add(*given.stream);
  }
  for (Stream other : others_) order(context_, other, own_);
}

OtherStreams::~OtherStreams() {
  try {
    join();
  } catch (const Error&) {
    // The call throws already: it is lost, as is the context.
  }
}

void OtherStreams::join() {
  for (Stream other : std::exchange(others_, {})) order(context_, own_, other);
}

}  // namespace kiln::python
