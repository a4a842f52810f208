#include "common_cards.h"

#include <algorithm>
#include <array>

namespace kiln {

DeviceFigures common_figures(const Arch& arch) {
  struct Row {
    int number;
    DeviceFigures figures;
  };
  static constexpr std::array<Row, 7> rows = {{{75, {40, 1.59e9, 0.32e12, int64_t{4} << 20}},
                                               {80, {108, 1.41e9, 2.04e12, int64_t{40} << 20}},
                                               {86, {72, 1.695e9, 0.6e12, int64_t{6} << 20}},
                                               {89, {142, 2.52e9, 0.864e12, int64_t{96} << 20}},
                                               {90, {132, 1.98e9, 4.8e12, int64_t{50} << 20}},
                                               {100, {148, 1.965e9, 8e12, int64_t{126} << 20}},
                                               {120, {170, 2.407e9, 1.79e12, int64_t{96} << 20}}}};
  const int number = 10 * arch.major + arch.minor;
  const auto newer = [number](const Row& row) { return row.number > number; };
  const auto next = std::find_if(rows.begin() + 1, rows.end(), newer);
  return std::prev(next)->figures;
}

}  // namespace kiln
