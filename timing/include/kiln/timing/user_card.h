// A user's card: a built-in one with what was found on a device in place of some figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

/// A figure of a card that was found on a device, in the card's unit.
struct FoundFigure {
  std::string name;
  uint32_t value = 0;
  std::string source;
};

struct UserCard {
  struct Figure {
    std::string name, value, base_value, source;
    bool found = false;  ///< Else it is the built-in card's.
  };
  std::string base;             ///< The built-in card: "a100".
  std::vector<Figure> figures;  ///< All that a card has.
  std::string text;             ///< Text of its file: each line says where its figure comes from.
};

/// `about`: what the file says first, a line of it. Throws Error(invalid_argument) if no built-in card is called `base`
/// or cards have no such figure, Error(parse_error) as parse_card() for a value that no card may have.
UserCard user_card(const std::string& base, const std::vector<FoundFigure>& found, std::string_view about);

}  // namespace kiln::timing
