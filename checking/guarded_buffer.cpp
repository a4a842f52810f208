#include "kiln/checking/guarded_buffer.h"

#include <fmt/format.h>

#include <algorithm>
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
      shift_(alignment < device_alignment ? alignment : 0),
      front_(zone_bytes + shift_),
      memory_(context_, front_ + bytes_ + (context_->device().info().emulated ? 0 : zone_bytes)) {}

void GuardedBuffer::place(Placement placement) {
  front_ = zone_bytes + (placement == Placement::aligned_no_better ? shift_ : 0);
}

// Words where it can: a zone is armed for every operand of every run.
void GuardedBuffer::fill(size_t begin, size_t end, cuda_abi::CUstream stream) {
  const auto fill_single = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) device::fill_bytes(*context_, memory_.address() + i, pattern[i % 4], 1, stream);
  };
  const size_t words_begin = std::min((begin + 3) / 4 * 4, end), words_end = std::max(end / 4 * 4, words_begin);
  fill_single(begin, words_begin);
  device::fill_words(*context_, memory_.address() + words_begin, pattern_word, (words_end - words_begin) / 4, stream);
  fill_single(words_end, end);
}

void GuardedBuffer::arm(cuda_abi::CUstream stream) {
  fill(0, front_, stream);
  fill(front_ + bytes_, memory_.size(), stream);
}

std::optional<std::string> GuardedBuffer::damage() const {
  const auto before = device::download<uint8_t>(*context_, memory_.address(), front_);
  for (size_t i = front_; i-- > 0;) {
    if (before[i] != pattern[i % 4]) return fmt::format("{} bytes before the start", front_ - i);
  }
  const size_t end = front_ + bytes_;
  const auto after = device::download<uint8_t>(*context_, memory_.address() + end, memory_.size() - end);
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] != pattern[(end + i) % 4]) return fmt::format("{} bytes after the end", i);
  }
  return std::nullopt;
}

}  // namespace kiln::checking
