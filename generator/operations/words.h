// Enumerations as the words of a request: each value has the name that its to_string() says.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// The one of `all` that a complete request names.
template <class Word, size_t count>
Word word_of(const Request& request, std::string_view attribute, const std::array<Word, count>& all) {
  const std::string& given = request.word(attribute);
  return *std::find_if(all.begin(), all.end(), [&](Word word) { return to_string(word) == given; });
}

/// The names of `all`: AttributeDefinition::words.
template <class Word, size_t count>
std::vector<std::string> words_of(const std::array<Word, count>& all) {
  std::vector<std::string> words;
  for (const Word word : all) words.emplace_back(to_string(word));
  return words;
}

}  // namespace kiln
