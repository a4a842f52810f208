#include "embedded_texts.h"

#include <utility>

#include "compressed_text.h"

namespace kiln {
namespace {

std::string take_text(std::string_view& texts) {
  std::string text(texts.substr(0, texts.find('\0')));
  texts.remove_prefix(text.size() + 1);
  return text;
}

}  // namespace

std::map<std::string, std::string> embedded_texts() {
  const std::string all = decompressed(embedded_bytes);
  std::map<std::string, std::string> files;
  for (std::string_view texts = all; !texts.empty();) {
    std::string path = take_text(texts);
    files[std::move(path)] = take_text(texts);
  }
  return files;
}

}  // namespace kiln
