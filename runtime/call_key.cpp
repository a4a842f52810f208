#include "call_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {
namespace {

// No pair of numbers.
constexpr CallKey::Word wide = ~CallKey::Word{0};

}  // namespace

uint64_t CallKey::hash() const {
  return XXH3_64bits(words_.data(), size_ * sizeof(Word));
}

void CallKey::add_wide(std::span<const int64_t> values) {
  words_[size_++] = wide;
  for (const int64_t value : values) words_[size_++] = static_cast<Word>(value);
}

}  // namespace kiln
