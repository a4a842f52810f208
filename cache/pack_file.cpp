// Packs as files.
#include <fmt/format.h>

#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/cache/pack.h"
#include "pack_reader.h"

namespace kiln::cache {

ParsedPack read_pack_file(const std::string& path, const PackValidator& validator) {
  const std::string text = read_pack_text(path);
  try {
    return parse_pack(text, validator);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  }
}

void write_pack_file(const std::string& path, const Pack& pack, std::string_view library_version) {
  OutputFile file("the pack", path);
  file.write(print_pack(pack, library_version));
  file.publish();
}

}  // namespace kiln::cache
