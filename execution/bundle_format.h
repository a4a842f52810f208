// The parts of a bundle's file. docs/shipping.md describes it.
//
//   offset 0     a line of header_bytes bytes: format, place and checksum of the index
//   after it     serialised programs, each at a multiple of alignment
//   at the end   the index: JSON, one object for each variant
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::execution::bundle_format {

inline constexpr std::string_view magic = "kiln-bundle ";
inline constexpr int version = 1;
inline constexpr uint64_t header_bytes = 128;
inline constexpr uint64_t alignment = 64;
inline constexpr uint64_t max_index_bytes = uint64_t{64} << 20;

struct Header {
  uint64_t index_offset = 0, index_bytes = 0;
  std::string index_digest;
};

/// Exactly header_bytes bytes.
std::string print_header(const Header& header);

}  // namespace kiln::execution::bundle_format
