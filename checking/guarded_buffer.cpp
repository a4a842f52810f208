#include "kiln/checking/guarded_buffer.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <vector>

namespace kiln::checking {
namespace {

constexpr size_t zone_bytes = 4096;
constexpr size_t device_alignment = 256;  // of every allocation

// NaN in f32, both halves are NaN in f16 and bf16, and every second byte is in fp8: what is read from a zone spoils the
// result. Not the NaN that arithmetic makes, so a kernel's NaN does not pass for it.
constexpr uint32_t pattern_word = 0x7fedffed;
constexpr std::array<uint8_t, 4> pattern{0xed, 0xff, 0xed, 0x7f};

}  // namespace

GuardedBuffer::GuardedBuffer(std::shared_ptr<const device::ContextHandle> context, size_t bytes, size_t alignment)
    : context_(std::move(context)),
      bytes_(bytes),
      front_(zone_bytes + (alignment < device_alignment ? alignment : 0)),
      gap_(context_->device().info().emulated ? 0 : (4 - (front_ + bytes) % 4) % 4),
      back_(context_->device().info().emulated ? 0 : zone_bytes),
      memory_(context_, front_ + bytes_ + gap_ + back_) {}

void GuardedBuffer::arm(cuda_abi::CUstream stream) {
  const cuda_abi::CUdeviceptr start = memory_.address();
  device::fill_words(*context_, start, pattern_word, front_ / 4, stream);
  for (size_t i = front_ / 4 * 4; i < front_; ++i) device::fill_bytes(*context_, start + i, pattern[i % 4], 1, stream);
  const size_t end = front_ + bytes_;
  for (size_t i = end; i < end + gap_; ++i) device::fill_bytes(*context_, start + i, pattern[i % 4], 1, stream);
  device::fill_words(*context_, start + end + gap_, pattern_word, back_ / 4, stream);
}

std::optional<std::string> GuardedBuffer::damage() const {
  const auto before = device::download<uint8_t>(*context_, memory_.address(), front_);
  for (size_t i = front_; i-- > 0;) {
    if (before[i] != pattern[i % 4]) return fmt::format("{} bytes before the start", front_ - i);
  }
  const size_t end = front_ + bytes_;
  const auto after = device::download<uint8_t>(*context_, memory_.address() + end, gap_ + back_);
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] != pattern[(end + i) % 4]) return fmt::format("{} bytes after the end", i);
  }
  return std::nullopt;
}

}  // namespace kiln::checking
