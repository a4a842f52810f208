#include "instruction_forms.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <sstream>
#include <vector>

namespace kiln::bench {
namespace {

constexpr std::array<std::string_view, 5> names = {"mma", "ldmatrix", "stmatrix", "movmatrix", "cp"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The modifiers of products have places; those of others are a set. Hints (.L2::128B, .shared::cta) change nothing.
std::string without_hints(std::string_view mnemonic, bool in_order) {
  std::vector<std::string> modifiers;
  for (const std::string& modifier : split(mnemonic, '.')) {
    if (modifier.find("::") == std::string::npos) modifiers.push_back(modifier);
    if (modifier == "shared::cta") modifiers.emplace_back("shared");
  }
  if (!in_order) std::sort(modifiers.begin() + 1, modifiers.end());
  // CUTLASS has it behind the types, the ISA in front of them.
  if (std::erase(modifiers, "satfinite") > 0) modifiers.emplace_back("satfinite");
  std::string text;
  for (const std::string& modifier : modifiers) text += (text.empty() ? "" : ".") + modifier;
  return text;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1));
}

// `source` with the uses of macros that have one parameter, from #define to #undef, replaced by what they stand for.
std::string without_macros(std::string source) {
  static const std::regex definition(R"re(#define (\w+)\((\w+)\)((?:[^\n]*\\\n)*[^\n]*\n)([^]*?)#undef \1\n)re");
  std::smatch found;
  while (std::regex_search(source, found, definition)) {
    const std::regex use(found[1].str() + R"re(\(([^)]*)\))re"), parameter("\\b" + found[2].str() + "\\b");
    const std::string body = std::regex_replace(found[3].str(), std::regex(R"re(\\\n)re"), "\n");
    const std::string text = found[4].str();
    std::string expanded;
    auto after = text.begin();
    for (std::sregex_iterator each(text.begin(), text.end(), use), end; each != end; ++each) {
      expanded.append(after, (*each)[0].first);
      expanded += std::regex_replace(body, parameter, (*each)[1].str());
      after = (*each)[0].second;
    }
    expanded.append(after, text.end());
    source = found.prefix().str() + expanded + found.suffix().str();
  }
  return source;
}

// Bytes and zero fill of a copy, from its operands: [to], [from], bytes{, size of the source}.
std::string copied(std::string_view operands) {
  std::vector<std::string> parts = split(operands, ',');
  if (parts.size() < 3) return "";
  std::string bytes = trimmed(parts[2]);
  if (bytes.starts_with("0x")) bytes = std::to_string(std::stoi(bytes, nullptr, 16));
  if (bytes.starts_with("%")) bytes = "%";
  return " " + bytes + (parts.size() > 3 ? " zfill" : "");
}

}  // namespace

std::set<std::string> instruction_forms(std::string_view text) {
  std::set<std::string> forms;
  for (const std::string_view name : names) {
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '%')) continue;
      size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      const std::string_view mnemonic = text.substr(at, end - at);
      if (!mnemonic.starts_with(std::string(name) + ".")) continue;
      if (name == "cp" && !mnemonic.starts_with("cp.async")) continue;
      std::string form = without_hints(mnemonic, name == "mma");
      if (end < text.size() && text[end] == '"') form += "...";  // goes on behind a macro
      const size_t stop = text.find(';', end);
      if (name == "cp" && stop != std::string_view::npos && form.find("group") == std::string::npos) {
        form += copied(text.substr(end, stop - end));
      }
      forms.insert(form);
    }
  }
  return forms;
}

std::string inline_assembly(std::string_view source) {
  const std::string expanded = without_macros(std::string(source));
  std::string text;
  bool inside = false, apart = false;  // in a literal; something else stands behind the last one
  for (size_t i = 0; i < expanded.size(); ++i) {
    const char c = expanded[i];
    if (!inside && c == '/' && expanded.compare(i, 2, "//") == 0) {
      i = std::min(expanded.find('\n', i), expanded.size() - 1);
    } else if (c == '"') {
      if (!inside && apart) text += "\"\n";
      inside = !inside;
      apart = false;
    } else if (inside) {
      text += c;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      apart = true;
    }
  }
  return text + "\"\n";
}

}  // namespace kiln::bench
