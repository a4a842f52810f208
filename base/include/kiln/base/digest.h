// Content digests: the identity of sources, algorithms and compiled kernels.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

/// Collects fields into one 128-bit digest (XXH3). Fields are length-prefixed, so ("ab","c") and ("a","bc") differ.
///
/// Not cryptographic: it tells apart what we made ourselves, and detects damage; it does not authenticate.
class Digest {
 public:
  Digest& add(std::string_view field);
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  std::string bytes_;
};

/// The digest of one field.
std::string digest_of(std::string_view text);

}  // namespace kiln
