#include "kiln/timing/sass.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "kiln/base/error.h"

namespace kiln::timing {

Control decode_control(uint64_t high_word) {
  const uint64_t bits = high_word >> 41;  // bit 105 of the instruction
  Control control;
  control.stall = bits & 15;
  control.yields = (bits >> 4 & 1) == 0;
  control.write_barrier = bits >> 5 & 7;
  control.read_barrier = bits >> 8 & 7;
  control.wait_mask = bits >> 11 & 63;
  control.reuse_mask = bits >> 17 & 15;
  return control;
}

bool Instruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

uint32_t Sass::index_of(int64_t address) const {
  const int64_t index = address / instruction_bytes;
  if (address < 0 || address % instruction_bytes != 0 || index >= static_cast<int64_t>(instructions.size())) {
    throw Error(ErrorCode::parse_error, fmt::format("kernel {} has no instruction at {:#x}", kernel, address));
  }
  return static_cast<uint32_t>(index);
}

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<uint64_t> hexadecimal(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Splits at `separator` outside of brackets.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == ')' || text[i] == '}') --depth;
    if (text[i] == separator && depth == 0) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (const std::string_view last = trimmed(text.substr(begin)); !last.empty()) parts.push_back(last);
  return parts;
}

constexpr size_t most_operands = 32;  // the compiler writes ten

struct Register {
  Operand::Kind kind;
  uint16_t index;
};

// "R12", "RZ", "UR4", "URZ", "P0", "PT", "UP0", "UPT", "B1".
std::optional<Register> register_named(std::string_view name) {
  using Kind = Operand::Kind;
  Register found{Kind::reg, zero_register};
  if (take(name, "UR")) {
    found.kind = Kind::uniform;
  } else if (take(name, "UP")) {
    found.kind = Kind::uniform_predicate;
  } else if (take(name, "P")) {
    found.kind = Kind::predicate;
  } else if (take(name, "B")) {
    found.kind = Kind::barrier;
  } else if (!take(name, "R")) {
    return std::nullopt;
  }
  const bool of_predicates = found.kind == Kind::predicate || found.kind == Kind::uniform_predicate;
  if (name == (of_predicates ? "T" : "Z")) {
    found.index = of_predicates ? true_predicate : zero_register;
    return found;
  }
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.index, 10);
  if (name.empty() || error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (found.index > (of_predicates ? true_predicate : zero_register)) return std::nullopt;
  return found;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& kernel) : text_(text) { sass_.kernel = kernel; }

  Sass parse() {
    find_section();
    read_section();
    if (pending_) fail("the text ends in the middle of an instruction");
    if (sass_.instructions.empty()) fail(fmt::format("kernel {} has no instructions", sass_.kernel));
    resolve_labels();
    return std::move(sass_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::parse_error, fmt::format("disassembly, line {}: {}", line_number_, what),
                "expected is what `nvdisasm -c -hex` prints of a cubin");
  }

  bool next_line() {
    if (position_ >= text_.size()) return false;
    const size_t end = std::min(text_.find('\n', position_), text_.size());
    line_ = text_.substr(position_, end - position_);
    position_ = end + 1;
    ++line_number_;
    return true;
  }

  // The kernel of a line `.section .text.NAME,"ax",@progbits`.
  static std::optional<std::string_view> section_of(std::string_view line) {
    line = trimmed(line);
    if (!take(line, ".section") || line.empty() || (line[0] != '\t' && line[0] != ' ')) return std::nullopt;
    line = trimmed(line);
    if (!take(line, ".text.")) return "";
    return line.substr(0, line.find(','));
  }

  void find_section() {
    std::string others;
    while (next_line()) {
      std::string_view line = trimmed(line_);
      if (take(line, ".target")) {
        read_target(trimmed(line));
      } else if (take(line, ".headerflags")) {
        read_flags(line);
      }
      const auto section = section_of(line_);
      if (section == std::string_view(sass_.kernel)) {
        if (sass_.arch == 0) fail("no .target stands before the code");
        return;
      }
      if (section && !section->empty()) others += fmt::format("{}{}", others.empty() ? "" : ", ", *section);
    }
    fail(fmt::format("no code of kernel {}; there is: {}", sass_.kernel, others.empty() ? "none" : others));
  }

  void read_target(std::string_view target) {
    std::string_view digits = target;
    if (!take(digits, "sm_")) fail(fmt::format("unknown target {}", target));
    read_arch(digits);
  }

  // CUDA 12's compilers say the target of 7.5 to 9.0 by a flag instead: "... EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(...)".
  void read_flags(std::string_view flags) {
    constexpr std::string_view flag = " EF_CUDA_SM";
    const size_t at = flags.find(flag);
    if (at != std::string_view::npos) read_arch(flags.substr(at + flag.size()));
  }

  void read_arch(std::string_view digits) {
    std::from_chars(digits.data(), digits.data() + digits.size(), sass_.arch);
    if (sass_.arch < 75) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("machine code of sm_{} cannot be timed: sm_75 is the oldest", sass_.arch));
    }
  }

  void read_section() {
    while (next_line()) {
      if (section_of(line_)) return;
      std::string_view line = trimmed(line_);
      if (line.starts_with("/*")) {
        read_code(line);
      } else if (line.ends_with(':')) {
        labels_[std::string(line.substr(0, line.size() - 1))] = next_address();
      }
    }
  }

  int64_t next_address() const { return static_cast<int64_t>(sass_.instructions.size()) * instruction_bytes; }

  // `/*0010*/ S2R R3, SR_TID.X ; /* 0x... */`, or the second word of the instruction above: `/* 0x... */`.
  void read_code(std::string_view line) {
    if (line.starts_with("/* 0x")) {
      if (!pending_) fail("an encoding without its instruction");
      Instruction& instruction = sass_.instructions.back();
      instruction.high = encoding(line);
      instruction.control = decode_control(instruction.high);
      pending_ = false;
      return;
    }
    if (pending_) fail("an instruction without the second half of its encoding");
    const size_t close = line.find("*/");
    const size_t end = line.find(';');
    if (close == std::string_view::npos || end == std::string_view::npos) fail("an instruction that is cut short");
    const auto address = hexadecimal(line.substr(2, close - 2));
    if (address != static_cast<uint64_t>(next_address())) {
      fail(fmt::format("an instruction at {}, expected was {:#06x}", line.substr(2, close - 2), next_address()));
    }
    Instruction& instruction = sass_.instructions.emplace_back();
    instruction.address = static_cast<uint32_t>(*address);
    instruction.low = encoding(trimmed(line.substr(end + 1)));
    pending_ = true;
    const std::string_view text = line.substr(close + 2, end - close - 2);
    read_instruction(instruction, trimmed(text.substr(0, text.find("(*"))));  // a remark: (*"SpillRefill"*)
  }

  uint64_t encoding(std::string_view comment) const {
    if (!take(comment, "/* 0x") || comment.size() < 16) fail("an instruction without its encoding");
    const auto word = hexadecimal(comment.substr(0, 16));
    if (!word) fail("an encoding that is no hexadecimal number");
    return *word;
  }

  void read_instruction(Instruction& instruction, std::string_view text) {
    if (take(text, "@")) {
      const size_t space = std::min(text.find(' '), text.size());
      std::string_view guard = text.substr(0, space);
      instruction.guard_inverted = take(guard, "!");
      const auto found = register_named(guard);
      const bool is_predicate =
          found && (found->kind == Operand::Kind::predicate || found->kind == Operand::Kind::uniform_predicate);
      if (!is_predicate) fail(fmt::format("unknown guard {}", guard));
      instruction.guard = found->index;
      instruction.guard_uniform = found->kind == Operand::Kind::uniform_predicate;
      text = trimmed(text.substr(space));
    }
    const size_t space = std::min(text.find(' '), text.size());
    const auto words = parts_of(text.substr(0, space), '.');
    if (words.empty()) fail("an instruction without a name");
    instruction.opcode = words[0];
    instruction.modifiers.assign(words.begin() + 1, words.end());
    for (const std::string_view part : parts_of(text.substr(space), ',')) {
      // RET.REL.NODEC R20 `(kernel), BRX R2 -0x410
      const size_t second = part.find(instruction.opcode.starts_with("BRX") ? " " : " `(");
      instruction.operands.push_back(read_operand(part.substr(0, second), instruction.low));
      if (second != std::string_view::npos)
        instruction.operands.push_back(read_operand(part.substr(second + 1), instruction.low));
    }
    if (instruction.operands.size() > most_operands) fail("an instruction with too many operands");
  }

  Operand read_operand(std::string_view text, uint64_t low) {
    Operand operand;
    if (take(text, "`(")) {
      operand.kind = Operand::Kind::label;
      operand.text = text.substr(0, text.rfind(')'));
      return operand;
    }
    read_signs(operand, text);
    if (text.starts_with("c[")) {
      read_constant(operand, text);
    } else if (const size_t bracket = text.find('['); bracket != std::string_view::npos) {
      read_memory(operand, text, bracket);
    } else if (!read_register(operand, text)) {
      read_other(operand, text, low);
    }
    return operand;
  }

  static void read_signs(Operand& operand, std::string_view& text) {
    // The sign of a number stays with it.
    if (text.size() > 1 && text[0] == '-' && std::string_view("|cRU").find(text[1]) != std::string_view::npos) {
      operand.negated = take(text, "-");
    }
    operand.inverted = take(text, "!") || take(text, "~");
    if (take(text, "|")) {
      operand.absolute = true;
      const size_t bar = text.find('|');
      if (bar != std::string_view::npos) text = text.substr(0, bar);
    }
  }

  static bool read_register(Operand& operand, std::string_view text) {
    const size_t dot = std::min(text.find('.'), text.size());
    const auto found = register_named(text.substr(0, dot));
    if (!found) return false;
    operand.kind = found->kind;
    operand.index = found->index;
    for (const std::string_view suffix : parts_of(text.substr(dot), '.')) {
      if (suffix != "reuse") operand.suffix += suffix;
    }
    return true;
  }

  // c[0x0][0x160], c[0x3][R4+0x10], c[0x0][UR4]
  void read_constant(Operand& operand, std::string_view text) {
    operand.kind = Operand::Kind::constant;
    const size_t first = text.find(']');
    const size_t second = text.find('[', first);
    const auto bank = text.starts_with("c[0x") ? hexadecimal(text.substr(4, first - 4)) : std::nullopt;
    if (second == std::string_view::npos || !bank || *bank > 255) fail(fmt::format("unknown constant {}", text));
    operand.bank = static_cast<uint8_t>(*bank);
    const size_t close = text.find(']', second);
    read_terms(operand, text.substr(second + 1, close - second - 1));
    const size_t dot = text.find('.', close);
    if (dot != std::string_view::npos) operand.suffix = text.substr(dot + 1);
  }

  // [R4.64+0x10], [R4.X4+UR2+-0x8], desc[UR6][R2.64]
  void read_memory(Operand& operand, std::string_view text, size_t bracket) {
    operand.kind = Operand::Kind::memory;
    operand.text = text.substr(0, bracket);
    const size_t last = text.rfind('[');
    read_terms(operand, text.substr(last + 1, text.find(']', last) - last - 1));
  }

  void read_terms(Operand& operand, std::string_view terms) {
    for (std::string_view term : parts_of(terms, '+')) {
      const bool minus = take(term, "-");
      if (take(term, "0x")) {
        const auto value = hexadecimal(term);
        if (!value || *value > ~uint32_t{0}) fail(fmt::format("unknown offset {}", term));
        operand.value += minus ? -static_cast<int64_t>(*value) : static_cast<int64_t>(*value);
        continue;
      }
      const auto words = parts_of(term, '.');
      const auto found = words.empty() ? std::nullopt : register_named(words[0]);
      if (!found) fail(fmt::format("unknown address {}", terms));
      if (found->kind == Operand::Kind::uniform) {
        operand.uniform_base = found->index;
        operand.uniform_index = true;
      } else {
        operand.base = found->index;
      }
      for (size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "64" && found->kind == Operand::Kind::reg) operand.wide = true;
        if (words[i] == "X4") operand.shift = 2;
        if (words[i] == "X8") operand.shift = 3;
        if (words[i] == "X16") operand.shift = 4;
      }
    }
  }

  void read_other(Operand& operand, std::string_view text, uint64_t low) const {
    std::string_view digits = text;
    const bool minus = take(digits, "-");
    if (take(digits, "0x")) {
      const auto value = hexadecimal(digits);
      if (!value) fail(fmt::format("unknown number {}", text));
      operand.kind = Operand::Kind::immediate;
      operand.value = static_cast<int64_t>(minus ? 0 - *value : *value);
    } else if (!digits.empty() && (std::isdigit(static_cast<unsigned char>(digits[0])) != 0 || digits[0] == '.' ||
                                   digits.ends_with("INF") || digits.ends_with("NAN"))) {
      operand.kind = Operand::Kind::immediate;  // of a float: its bits are the upper half of the first word
      operand.value = static_cast<int64_t>(low >> 32);
    } else {
      operand.kind = text.starts_with("SR_") ? Operand::Kind::special : Operand::Kind::other;
      operand.text = text;
    }
  }

  void resolve_labels() {
    for (Instruction& instruction : sass_.instructions) {
      for (Operand& operand : instruction.operands) {
        if (operand.kind != Operand::Kind::label) continue;
        const auto found = labels_.find(operand.text);
        if (found == labels_.end()) fail(fmt::format("no place in the code is called {}", operand.text));
        operand.value = found->second;
      }
    }
  }

  std::string_view text_, line_;
  size_t position_ = 0;
  int line_number_ = 0;
  bool pending_ = false;  // the second word of the last instruction is still to come
  std::map<std::string, int64_t> labels_;
  Sass sass_;
};

}  // namespace

Sass parse_sass(std::string_view text, const std::string& kernel) {
  return Parser(text, kernel).parse();
}

}  // namespace kiln::timing
