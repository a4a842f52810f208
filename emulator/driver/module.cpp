#include "module.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "fat_binary.h"
#include "kiln/base/error.h"
#include "machine/program.h"

namespace kiln::emulator {
namespace {

// The newest major version of PTX that the emulated driver accepts, that of CUDA 13. Any minor version will do: a
// version adds instructions, and one that is not known is refused by its name.
constexpr int newest_ptx_major = 9;

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

// The text that fits the device best: of the highest architecture that it can run. Null if there is none.
const FatImage* best_of(const std::vector<FatImage>& images, const DeviceLimits& limits) {
  const FatImage* best = nullptr;
  for (const FatImage& image : images) {
    const std::optional<Header> header = read_header(image.content);
    if (header && runs_on(header->target, limits) && (best == nullptr || image.arch > best->arch)) best = &image;
  }
  return best;
}

// "PTX of 8.0, a cubin of 9.0"
std::string list_of(const std::vector<FatImage>& images) {
  std::string list;
  for (const FatImage& image : images) {
    if (!list.empty()) list += ", ";
    list += fmt::format("{} for compute capability {}.{}", image.is_ptx ? "PTX" : "a cubin", image.arch / 10,
                        image.arch % 10);
    if (!image.refusal.empty()) list += fmt::format(" (which {})", image.refusal);
  }
  return list.empty() ? "nothing" : list;
}

// Machine code runs on devices of its major version that are not older (CUDA C++ Programming Guide, binary
// compatibility).
const FatImage* best_cubin_of(const std::vector<FatImage>& images, const DeviceLimits& limits) {
  const auto major = static_cast<uint32_t>(limits.major), minor = static_cast<uint32_t>(limits.minor);
  const FatImage* best = nullptr;
  for (const FatImage& image : images) {
    const bool runs = !image.is_ptx && !image.content.empty() && image.arch / 10 == major && image.arch % 10 <= minor;
    if (runs && (best == nullptr || image.arch > best->arch)) best = &image;
  }
  return best;
}

// The text and the machine code of a fat binary.
struct Contents {
  std::string text;
  std::shared_ptr<const MachineCode> code;
};

Contents contents_of_fat_binary(const void* image, size_t bytes, const DeviceModel& model, bool with_code) {
  const std::vector<FatImage> images = read_fat_binary(image, bytes);
  const FatImage* const best = best_of(images, model.limits);
  if (best == nullptr) {
    throw ImageRefused{
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        fmt::format("the fat binary has no PTX that can be executed on {}, compute capability {}.{}; it holds {}. The "
                    "emulated device executes PTX only: build with -gencode arch=compute_{}{},code=compute_{}{}",
                    model.name, model.limits.major, model.limits.minor, list_of(images), model.limits.major,
                    model.limits.minor, model.limits.major, model.limits.minor)};
  }
  Contents contents{best->content, nullptr};
  if (const FatImage* const cubin = with_code ? best_cubin_of(images, model.limits) : nullptr) {
    try {
      contents.code = std::make_shared<const MachineCode>(cubin->content);
    } catch (const Error& error) {  // the PTX can be executed all the same
      std::fprintf(stderr, "kiln emulator: module: %s\n", error.what());
    }
  }
  return contents;
}

}  // namespace

LoadedImage load_image(const void* image, size_t bytes, const DeviceModel& model, const Settings& settings,
                       bool with_code) {
  const auto begins_like = [&](std::string_view magic) {
    return strnlen(static_cast<const char*>(image), std::min(bytes, magic.size())) == magic.size();
  };
  constexpr std::string_view elf_magic =
      "\x7f"
      "ELF";
  Contents unpacked;
  std::string_view text;
  if (begins_like(elf_magic) && std::memcmp(image, elf_magic.data(), elf_magic.size()) == 0) {
    throw ImageRefused{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "the image is a cubin (ELF); the emulated device executes PTX only: load the PTX of the same "
                       "compile instead"};
  }
  if (begins_like(elf_magic) && is_fat_binary(image, bytes)) {
    unpacked = contents_of_fat_binary(image, bytes, model, with_code);
    text = unpacked.text;
  } else {
    text = static_cast<const char*>(image);
  }
  const std::optional<Header> header = read_header(text);
  if (!header) {
    throw ImageRefused{CUDA_ERROR_INVALID_IMAGE,
                       "the image is not PTX text: it does not begin with .version and .target directives"};
  }
  if (header->ptx_major > newest_ptx_major) {
    throw ImageRefused{CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                       fmt::format("PTX version {}.{} is newer than {}.x, the newest that this device accepts",
                                   header->ptx_major, header->ptx_minor, newest_ptx_major)};
  }
  if (!runs_on(header->target, model.limits)) {
    throw ImageRefused{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       fmt::format("PTX for .target {} cannot run on {}, compute capability {}.{}", header->target,
                                   model.name, model.limits.major, model.limits.minor)};
  }
  try {
    const int capability = 10 * model.limits.major + model.limits.minor;
    const int tensor_hardware = settings.tensor == TensorArithmetic::hardware ? capability : 0;
    return {load_program(text, *settings.units, tensor_hardware), std::move(unpacked.code)};
  } catch (const LoadError& error) {
    throw ImageRefused{CUDA_ERROR_INVALID_PTX, error.what()};
  }
}

uint32_t registers_of(const Function& function) {
  const KernelInfo& kernel = info(*function.kernel);
  const timing::KernelFacts* const facts = function.code ? function.code->facts(kernel.name) : nullptr;
  return facts == nullptr ? kernel.registers_estimate : static_cast<uint32_t>(facts->registers);
}

}  // namespace kiln::emulator
