#include "kiln/timing/user_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/timing/card.h"

namespace kiln::timing {
namespace {

// The first word, which is taken from `line` with the blanks behind it.
std::string take_first_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.find_first_not_of(' ', word.size()), line.size()));
  return std::string(word);
}

}  // namespace

UserCard user_card(const std::string& base, const std::vector<FoundFigure>& found, std::string_view about) {
  UserCard card{base, {}, fmt::format("# {}\n# Figures of the card {} are from where its file says:\n", about, base)};
  std::string_view text = text_of_card(base);
  size_t used = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line[0] == '#') {
      card.text += fmt::format("{}\n", line);
      continue;
    }
    UserCard::Figure& figure = card.figures.emplace_back();
    figure.name = take_first_word(line);
    figure.value = figure.base_value = take_first_word(line);
    figure.source = fmt::format("{}: {}", base, line);
    const auto other = std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.name == figure.name; });
    if (other != found.end()) {
      figure.value = std::to_string(other->value);
      figure.source = other->source;
      figure.found = true;
      ++used;
    }
    card.text += fmt::format("{} {}  {}\n", figure.name, figure.value, figure.source);
  }
  if (used != found.size()) {
    throw Error(ErrorCode::invalid_argument, "a figure was found that cards do not have, or one was found twice");
  }
  parse_card("of what was found", card.text);
  return card;
}

}  // namespace kiln::timing
