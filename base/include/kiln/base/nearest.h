// Which name was meant: for messages about words that nobody knows.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// The fewest letters to put in, take out, replace or swap with a neighbour that make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The names of `known` that `word` was probably meant for, in their order: those that fewest edits lead to, at most
/// one for every three letters; where there is none, those that begin with `word`. At most three.
std::vector<std::string_view> nearest_names(std::string_view word, std::span<const std::string_view> known);

/// "did you mean conv_forward?", "did you mean pool_forward or pool_backward?"; `otherwise` where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         std::string_view otherwise = {});

}  // namespace kiln
