#include "driver/module.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "machine/program.h"

namespace kiln::emulator {
namespace {

// The newest PTX the emulated driver accepts, that of CUDA 13.0.
constexpr int newest_ptx_major = 9, newest_ptx_minor = 0;

constexpr std::array<char, 4> elf_magic = {0x7f, 'E', 'L', 'F'};
constexpr uint32_t fatbin_magic = 0xBA55ED50;
constexpr uint32_t fatbin_wrapper_magic = 0x466243B1;

// Words of PTX text, without comments; enough to read the directives at its head.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  // The next word, or an empty one at the end. A comma is a word.
  std::string_view next() {
    skip_blanks_and_comments();
    size_t length = 0;
    while (length < text_.size() && !is_blank(text_[length]) && text_[length] != ',') ++length;
    if (length == 0 && !text_.empty()) length = 1;
    const std::string_view word = text_.substr(0, length);
    text_.remove_prefix(length);
    return word;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void skip_blanks_and_comments() {
    while (!text_.empty()) {
      size_t length = 0;
      if (is_blank(text_.front())) {
        length = 1;
      } else if (text_.starts_with("//")) {
        length = std::min(text_.find('\n'), text_.size());
      } else if (text_.starts_with("/*")) {
        const size_t end = text_.find("*/");
        length = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
      text_.remove_prefix(length);
    }
  }

  std::string_view text_;
};

struct Header {
  int ptx_major = 0, ptx_minor = 0;
  std::string_view target;  // e.g. "sm_90a"
};

// ".version M.m" and ".target sm_XY[,...]" at the head of the text; nothing if it does not begin like PTX.
std::optional<Header> read_header(std::string_view text) {
  Words words(text);
  if (words.next() != ".version") return std::nullopt;
  const std::string_view version = words.next();
  const size_t dot = version.find('.');
  if (dot == std::string_view::npos || words.next() != ".target") return std::nullopt;
  Header header;
  std::from_chars(version.data(), version.data() + dot, header.ptx_major);
  std::from_chars(version.data() + dot + 1, version.data() + version.size(), header.ptx_minor);
  header.target = words.next();
  return header;
}

// Whether PTX for `target` can be compiled for the device: plain targets run on the same and newer compute
// capabilities, "f" targets within the major version, "a" targets on exactly that one. (PTX ISA, ".target".)
bool runs_on(std::string_view target, const DeviceLimits& limits) {
  if (!target.starts_with("sm_")) return false;
  target.remove_prefix(3);
  int wanted = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), wanted);
  if (error != std::errc()) return false;
  const std::string_view suffix(end, static_cast<size_t>(target.data() + target.size() - end));
  const int have = limits.major * 10 + limits.minor;
  if (suffix == "a") return have == wanted;
  if (suffix == "f") return have >= wanted && have / 10 == wanted / 10;
  return suffix.empty() && have >= wanted;
}

void refuse_binaries(const void* image) {
  if (std::memcmp(image, elf_magic.data(), elf_magic.size()) == 0) {
    throw ImageRefused{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "the image is a cubin (ELF); the emulated device executes PTX only: load the PTX of the same "
                       "compile instead"};
  }
  uint32_t word = 0;
  std::memcpy(&word, image, sizeof word);
  if (word == fatbin_magic || word == fatbin_wrapper_magic) {
    throw ImageRefused{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "the image is a fat binary; the emulated device executes PTX text only: load the PTX of the "
                       "same compile instead"};
  }
}

}  // namespace

std::shared_ptr<const Program> load_image(const void* image, const DeviceModel& model, const UnitTable& units) {
  const char* characters = static_cast<const char*>(image);
  if (strnlen(characters, elf_magic.size()) == elf_magic.size()) refuse_binaries(image);
  const std::string_view text(characters);
  const std::optional<Header> header = read_header(text);
  if (!header) {
    throw ImageRefused{CUDA_ERROR_INVALID_IMAGE,
                       "the image is not PTX text: it does not begin with .version and .target directives"};
  }
  if (std::pair(header->ptx_major, header->ptx_minor) > std::pair(newest_ptx_major, newest_ptx_minor)) {
    throw ImageRefused{CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                       fmt::format("PTX version {}.{} is newer than {}.{}, the newest that this device accepts",
                                   header->ptx_major, header->ptx_minor, newest_ptx_major, newest_ptx_minor)};
  }
  if (!runs_on(header->target, model.limits)) {
    throw ImageRefused{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       fmt::format("PTX for .target {} cannot run on {}, compute capability {}.{}", header->target,
                                   model.name, model.limits.major, model.limits.minor)};
  }
  try {
    return load_program(text, units);
  } catch (const LoadError& error) {
    throw ImageRefused{CUDA_ERROR_INVALID_PTX, error.what()};
  }
}

}  // namespace kiln::emulator
