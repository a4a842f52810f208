// Mutations of texts and bytes.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

/// Changes `input` in one to eight places: flips, erases, repeats, inserts pieces of `dictionary` or of `other`,
/// replaces numbers by awkward ones. The result has at most `limit` bytes.
std::string mutate(std::string input, std::string_view other, const std::vector<std::string>& dictionary,
                   std::mt19937_64& random, std::size_t limit);

}  // namespace kiln::fuzz
