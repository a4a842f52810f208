#include "atomic_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kiln/base/output_file.h"

namespace kiln::store {

std::optional<std::string> write_atomically(const std::string& path, mode_t mode, std::string_view header,
                                            std::string_view content) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  AsideFile file((folder / fmt::format("{}{}", aside_prefix, unused_number())).string(), mode);
  if (file.is_open() && file.write(header) && file.write(content) && file.rename_to(path)) return std::nullopt;
  return std::strerror(errno);
}

}  // namespace kiln::store
