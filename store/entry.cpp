#include "entry.h"

#include <fmt/format.h>

#include "kiln/base/digest.h"

namespace kiln::store {

std::string entry_header(std::string_view key, std::string_view content) {
  const std::string checksum = Digest().add(key).add(content).hex();
  return fmt::format("kiln-stored 1 {} {} {}\n", key, content.size(), checksum);
}

std::optional<std::string_view> entry_content(std::string_view key, std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view content = bytes.substr(end + 1);
  if (bytes.substr(0, end + 1) != entry_header(key, content)) return std::nullopt;
  return content;
}

}  // namespace kiln::store
