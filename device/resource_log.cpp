#include "kiln/device/resource_log.h"

#include <charconv>
#include <optional>

namespace kiln::device {
namespace {

/// The text of a ptxas line after its "ptxas info    : " or "ptxas         .     " head; nothing for other lines.
std::optional<std::string_view> ptxas_text(std::string_view line) {
  if (!line.starts_with("ptxas ")) return std::nullopt;
  const size_t mark = line.find_first_of(":.");
  if (mark == std::string_view::npos) return std::nullopt;
  const size_t text = line.find_first_not_of(' ', mark + 1);
  return text == std::string_view::npos ? std::string_view() : line.substr(text);
}

/// The number that stands before `unit` ("24 bytes stack frame") or, where the words come first, after it.
int number_before(std::string_view text, std::string_view unit) {
  const size_t at = text.find(unit);
  if (at == std::string_view::npos || at < 2) return 0;
  const size_t end = at - 1;  // the blank between number and unit
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(text.data() + begin, text.data() + end, number);
  return number;
}

std::string_view between_quotes(std::string_view text, size_t which) {
  size_t open = text.find('\'');
  for (; which > 0 && open != std::string_view::npos; --which) {
    open = text.find('\'', open + 1);
    if (open != std::string_view::npos) open = text.find('\'', open + 1);
  }
  if (open == std::string_view::npos) return {};
  const size_t close = text.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
}

/// Reads one line into the kernel that the log is at. Functions that are called and not inlined have properties too;
/// they are reported under their own name and belong to no entry, so they are passed over.
class Reader {
 public:
  void line(std::string_view line) {
    const std::optional<std::string_view> found = ptxas_text(line);
    if (!found) return;
    const std::string_view text = *found;
    constexpr std::string_view properties = "Function properties for ";
    if (text.starts_with("Compiling entry function")) {
      KernelResources kernel;
      kernel.name = between_quotes(text, 0);
      kernel.arch = between_quotes(text, 1);
      kernels_.push_back(std::move(kernel));
    } else if (kernels_.empty()) {
      return;
    } else if (text.starts_with(properties)) {
      in_entry_ = text.substr(properties.size()) == kernels_.back().name;
    } else if (text.find("bytes stack frame") != std::string_view::npos) {
      if (in_entry_) frame(text);
    } else if (text.starts_with("Used ")) {
      use(text);
    }
  }

  std::vector<KernelResources> take() { return std::move(kernels_); }

 private:
  void frame(std::string_view text) {
    KernelResources& kernel = kernels_.back();
    kernel.stack = number_before(text, "bytes stack frame");
    kernel.spill_stores = number_before(text, "bytes spill stores");
    kernel.spill_loads = number_before(text, "bytes spill loads");
  }

  void use(std::string_view text) {
    KernelResources& kernel = kernels_.back();
    kernel.registers = number_before(text, "registers");
    kernel.barriers = number_before(text, "barriers");
    kernel.static_shared = number_before(text, "bytes smem");
    kernel.constant = number_before(text, "bytes cmem[0]");
  }

  std::vector<KernelResources> kernels_;
  bool in_entry_ = false;
};

}  // namespace

std::vector<KernelResources> parse_resource_log(std::string_view log) {
  Reader reader;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    reader.line(log.substr(0, end));
    if (end == std::string_view::npos) break;
    log.remove_prefix(end + 1);
  }
  return reader.take();
}

}  // namespace kiln::device
