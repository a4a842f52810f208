#include "kiln/timing/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

// Attributes of .nv.info, as `cuobjdump -elf` names them.
constexpr uint8_t parameter_bank = 0x0a, frame_size = 0x11, register_count = 0x2f;
constexpr uint32_t most_registers = 255, most_local_bytes = 512 << 10;  // of a thread
constexpr std::string_view code_of = ".text.";
// Limit on the bytes of names, constants and attributes, counted each time they are read: some hundred times those of a
// large cubin.
constexpr size_t most_bytes = size_t{256} << 20;
constexpr uint8_t least_format = 1, sized_format = 4;  // of the others the value stands in place of the size

class Cubin {
 public:
  explicit Cubin(std::string_view bytes) : bytes_(bytes) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_machine != EM_CUDA) fail("no ELF file of CUDA");
    if (header_.e_shnum > 0 && header_.e_shentsize < sizeof(Elf64_Shdr)) fail("its sections are of another form");
    for (int i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(at<Elf64_Shdr>(header_.e_shoff + uint64_t{header_.e_shentsize} * i));
    }
    if (header_.e_shstrndx >= sections_.size()) fail("names of its sections are missing");
  }

  std::vector<KernelFacts> kernels() {
    for (const Elf64_Shdr& section : sections_) {
      const std::string_view name = name_of(section);
      if (!name.starts_with(code_of) || section.sh_size == 0) continue;
      KernelFacts facts;
      facts.name = name.substr(code_of.size());
      facts.registers = static_cast<int>(section.sh_info >> 24);
      found_.push_back(std::move(facts));
    }
    for (KernelFacts& facts : found_) {
      if (!by_name_.emplace(facts.name, &facts).second) fail(fmt::format("it has two kernels {}", facts.name));
    }
    for (const Elf64_Shdr& section : sections_) add_section(name_of(section), section);
    add_attributes();
    add_variables();
    return std::move(found_);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw Error(ErrorCode::parse_error, fmt::format("this is no whole cubin: {}", what));
  }

  template <class T>
  T at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) fail("it is cut short");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::string_view content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    if (section.sh_offset > bytes_.size() || bytes_.size() - section.sh_offset < section.sh_size)
      fail("it is cut short");
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

  // Sections may all name the same bytes. Without a limit, a small file would take the time and memory of its square.
  void spend(size_t bytes) {
    if (bytes > left_) fail("its sections hold the same bytes again and again");
    left_ -= bytes;
  }

  std::string_view text_at(std::string_view table, size_t offset) {
    if (offset >= table.size()) fail("a name is missing");
    const std::string_view text = table.substr(offset, table.find('\0', offset) - offset);
    spend(text.size());
    return text;
  }

  std::string_view name_of(const Elf64_Shdr& section) {
    return text_at(content(sections_[header_.e_shstrndx]), section.sh_name);
  }

  // The name of a symbol, by its number.
  std::string_view symbol(uint32_t number) {
    if (symbols_ == nullptr) fail("it has no symbols");
    const auto entry = at<Elf64_Sym>(symbols_->sh_offset + uint64_t{number} * sizeof(Elf64_Sym));
    return text_at(content(sections_[symbols_->sh_link]), entry.st_name);
  }

  // The kernel whose name follows `prefix` in a section's; null if that is another section.
  KernelFacts* kernel_of(std::string_view section, std::string_view prefix) const {
    if (!section.starts_with(prefix)) return nullptr;
    const auto found = by_name_.find(section.substr(prefix.size()));
    return found == by_name_.end() ? nullptr : found->second;
  }

  // A bank of one kernel, or of all of them.
  void add_constants(std::string KernelFacts::*bank, const Elf64_Shdr& section, KernelFacts* of) {
    const std::string_view bytes = content(section);
    spend(bytes.size() * (of == nullptr ? found_.size() : 1));
    if (of != nullptr)
      of->*bank = bytes;
    else
      for (KernelFacts& facts : found_) facts.*bank = bytes;
  }

  void add_section(std::string_view name, const Elf64_Shdr& section) {
    if (KernelFacts* const of = kernel_of(name, ".nv.shared."))
      of->shared_bytes = static_cast<uint32_t>(section.sh_size);
    if (name == ".nv.constant2") add_constants(&KernelFacts::constants, section, nullptr);
    if (name == ".nv.constant3") add_constants(&KernelFacts::variables, section, nullptr);
    if (KernelFacts* const of = kernel_of(name, ".nv.constant2.")) add_constants(&KernelFacts::constants, section, of);
    if (KernelFacts* const of = kernel_of(name, ".nv.info.")) {
      each_attribute(content(section), [&](uint8_t attribute, std::string_view value) {
        if (attribute != parameter_bank || value.size() < 8) return;
        of->parameter_base = word(value, 4) & 0xffff;
        of->parameter_bytes = word(value, 4) >> 16;
      });
    }
  }

  // Symbols of the section of bank 3.
  void add_variables() {
    for (size_t bank = 0; symbols_ != nullptr && bank < sections_.size(); ++bank) {
      if (name_of(sections_[bank]) != ".nv.constant3") continue;
      std::vector<ConstantVariable> places;
      const uint64_t count = content(*symbols_).size() / sizeof(Elf64_Sym);
      spend(count * sizeof(Elf64_Sym) * (1 + found_.size()));
      for (uint64_t i = 0; i < count; ++i) {
        const auto entry = at<Elf64_Sym>(symbols_->sh_offset + i * sizeof(Elf64_Sym));
        if (entry.st_shndx != bank || ELF64_ST_TYPE(entry.st_info) != STT_OBJECT) continue;
        places.push_back({std::string(symbol(static_cast<uint32_t>(i))), entry.st_value, entry.st_size});
      }
      for (KernelFacts& facts : found_) facts.variable_places = places;
    }
  }

  // .nv.info holds what it says of all kernels by symbol.
  void add_attributes() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_SYMTAB && section.sh_link < sections_.size() && symbols_ == nullptr)
        symbols_ = &section;
    }
    for (const Elf64_Shdr& section : sections_) {
      if (name_of(section) != ".nv.info") continue;
      each_attribute(content(section), [&](uint8_t attribute, std::string_view value) {
        if ((attribute != register_count && attribute != frame_size) || value.size() < 8) return;
        const auto of = by_name_.find(symbol(word(value, 0)));
        if (of == by_name_.end()) return;
        if (attribute == register_count)
          of->second->registers = static_cast<int>(at_most(most_registers, word(value, 4)));
        if (attribute == frame_size) of->second->local_bytes = at_most(most_local_bytes, word(value, 4));
      });
    }
  }

  static uint32_t at_most(uint32_t most, uint32_t value) {
    if (value > most) fail(fmt::format("a kernel of it needs {}, and no machine has more than {}", value, most));
    return value;
  }

  static uint32_t word(std::string_view bytes, size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }

  template <class Use>
  void each_attribute(std::string_view bytes, const Use& use) {
    spend(bytes.size());
    while (bytes.size() >= 4) {
      const auto format = static_cast<uint8_t>(bytes[0]), attribute = static_cast<uint8_t>(bytes[1]);
      uint16_t size = 0;
      std::memcpy(&size, bytes.data() + 2, sizeof size);
      if (format < least_format || format > sized_format) fail("an attribute of another form");
      if (format != sized_format) size = 0;
      if (bytes.size() - 4 < size) fail("an attribute is cut short");
      if (format == sized_format) use(attribute, bytes.substr(4, size));
      bytes.remove_prefix(size_t{4} + size);
    }
  }

  std::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  const Elf64_Shdr* symbols_ = nullptr;
  size_t left_ = most_bytes;
  std::vector<KernelFacts> found_;
  std::unordered_map<std::string_view, KernelFacts*> by_name_;
};

}  // namespace

std::vector<KernelFacts> read_cubin(std::string_view bytes) {
  return Cubin(bytes).kernels();
}

const KernelFacts& find_kernel(const std::vector<KernelFacts>& kernels, std::string_view kernel) {
  std::string names;
  for (const KernelFacts& facts : kernels) {
    if (facts.name == kernel) return facts;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", facts.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("the cubin has no kernel {}", kernel),
              fmt::format("it has {}", names.empty() ? "none" : names));
}

}  // namespace kiln::timing
