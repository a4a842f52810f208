#include "kiln/base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>

namespace kiln {

Digest& Digest::add(std::string_view field) {
  const uint64_t length = field.size();
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>((length >> shift) & 0xff));
  bytes_.append(field);
  return *this;
}

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(hash.high64), static_cast<uint64_t>(hash.low64));
}

std::string digest_of(std::string_view text) {
  return Digest().add(text).hex();
}

}  // namespace kiln
