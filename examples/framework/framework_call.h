// Tools with which a framework's operator hands its tensors to Kiln: the Context of the tensors' device, and, on the
// emulated device, tensors on the CPU that the device reaches. Shared by the examples for ONNX Runtime and JAX.
#pragma once

#include <kiln/base/error.h>
#include <kiln/call.h>
#include <kiln/context.h>
#include <kiln/memory.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace framework {

/// Where the framework has put the tensors of a call.
enum class Memory { host, device };

/// The Context of device `ordinal`, made by the first call for it. It lives until the process ends: at that point the
/// driver may be gone before anything of ours, so nothing is taken down.
inline kiln::Context& context_of(int ordinal) {
  static auto& mutex = *new std::mutex;
  static auto& contexts = *new std::map<int, kiln::Context>;
  const std::scoped_lock lock(mutex);
  const auto known = contexts.find(ordinal);
  if (known != contexts.end()) return known->second;
  kiln::ContextOptions options;
  options.device = ordinal;
  return contexts.emplace(ordinal, kiln::Context(options)).first->second;
}

/// Lets the emulated device reach exactly the bytes of tensors on the CPU, so that a kernel that leaves them is
/// reported. Memory is registered once, and calls may share weights: one call at a time, as the device itself works.
class HostTensors {
 public:
  HostTensors(kiln::Context& context, std::span<const kiln::NamedTensor> tensors) : alone_(one_call()) {
    struct Range {
      std::byte* begin;
      std::byte* end;
    };
    std::vector<Range> ranges;
    for (const kiln::NamedTensor& each : tensors) {
      if (each.tensor.empty()) continue;
      auto* begin = static_cast<std::byte*>(const_cast<void*>(each.tensor.data()));
      ranges.push_back({begin, begin + each.tensor.span_bytes()});
    }
    std::ranges::sort(ranges, {}, &Range::begin);
    for (size_t i = 0; i < ranges.size();) {
      Range whole = ranges[i];
      while (++i < ranges.size() && ranges[i].begin < whole.end) whole.end = std::max(whole.end, ranges[i].end);
      registered_.emplace_back(context, whole.begin, static_cast<size_t>(whole.end - whole.begin));
    }
  }

  /// After the call. Throws kiln::Error for a fault of its kernel.
  void release() {
    for (kiln::RegisteredMemory& each : registered_) each.release();
  }

 private:
  static std::mutex& one_call() {
    static auto& mutex = *new std::mutex;
    return mutex;
  }

  std::unique_lock<std::mutex> alone_;
  std::vector<kiln::RegisteredMemory> registered_;
};

/// kiln::call() on tensors that lie in `memory` of device `ordinal`. Throws as it does.
inline void call(int ordinal, Memory memory, std::string_view what, std::span<const kiln::NamedTensor> tensors,
                 kiln::Stream stream) {
  kiln::Context& context = context_of(ordinal);
  if (memory == Memory::device) {
    kiln::call(context, what, tensors, {}, stream);
    return;
  }
  if (!context.is_emulated()) {
    throw kiln::Error(kiln::ErrorCode::unsupported,
                      "the tensors are on the CPU, and Kiln's device is " + context.device_description(),
                      "run this on the framework's CUDA device, or set KILN_DRIVER=emulator");
  }
  HostTensors reached(context, tensors);
  kiln::call(context, what, tensors);
  reached.release();
}

}  // namespace framework
