#include "operations/grid_words.h"

#include <array>
#include <utility>

#include "operations/words.h"

namespace kiln {
namespace {

constexpr std::array grid_ends = {GridEnds::edges, GridEnds::centres};

}  // namespace

OperandDefinition grid_operand(std::string name, Role role, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = role,
          .extents = "N P Q 2; N Z P Q 3",
          .left_out = std::move(left_out),
          .summary = std::move(summary)};
}

AttributeDefinition ends_attribute() {
  return {"ends", std::string("edges"), Printing::always, words_of(grid_ends),
          "what -1 and 1 stand for: the outer edges of the first and last elements, or their centres"};
}

GridEnds ends_of(const Request& request) {
  return word_of(request, "ends", grid_ends);
}

}  // namespace kiln
