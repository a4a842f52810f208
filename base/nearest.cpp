#include "kiln/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace kiln {

// Only the last three rows of the distance's usual table are needed.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> nearest_names(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t most_names = 3;
  constexpr std::size_t letters_an_edit = 3;
  std::vector<std::string_view> nearest;
  std::size_t least = std::max<std::size_t>(word.size() / letters_an_edit, 1);
  for (std::string_view name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance > least || distance >= std::max(word.size(), name.size())) continue;  // or no letter is shared
    if (distance < least) nearest.clear();
    least = distance;
    nearest.push_back(name);
  }
  if (nearest.empty() && !word.empty()) {
    std::copy_if(known.begin(), known.end(), std::back_inserter(nearest),
                 [&](std::string_view name) { return name.starts_with(word); });
  }
  if (nearest.size() > most_names) nearest.resize(most_names);
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known, std::string_view otherwise) {
  const std::vector<std::string_view> names = nearest_names(word, known);
  if (names.empty()) return std::string(otherwise);
  return fmt::format("did you mean {}?", fmt::join(names, " or "));
}

}  // namespace kiln
