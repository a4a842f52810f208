#include "call_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

uint64_t CallKey::hash() const {
  return XXH3_64bits(words_.data(), size_ * sizeof(int64_t));
}

}  // namespace kiln
