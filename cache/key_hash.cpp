#include "kiln/cache/key_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln::cache {

KeyHash hash_key(std::string_view request) {
  const XXH128_hash_t hash = XXH3_128bits(request.data(), request.size());
  return {hash.low64, hash.high64};
}

}  // namespace kiln::cache
