#include "mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace kiln::fuzz {
namespace {

using Random = std::mt19937_64;

std::size_t below(std::size_t n, Random& random) {
  return n == 0 ? 0 : static_cast<std::size_t>(random() % n);
}

// A length that is mostly small.
std::size_t length_up_to(std::size_t n, Random& random) {
  return below(std::min(n, std::size_t{1} << below(12, random)) + 1, random);
}

void replace_number(std::string& input, Random& random) {
  constexpr std::array<std::string_view, 14> awkward = {"0",
                                                        "1",
                                                        "-1",
                                                        "2",
                                                        "2147483647",
                                                        "2147483648",
                                                        "4294967296",
                                                        "9223372036854775807",
                                                        "9223372036854775808",
                                                        "-9223372036854775808",
                                                        "00",
                                                        "1e308",
                                                        "nan",
                                                        "99999999999999999999999"};
  const std::size_t from = below(input.size(), random);
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto first = std::find_if(input.begin() + static_cast<std::ptrdiff_t>(from), input.end(), is_digit);
  const auto last = std::find_if_not(first, input.end(), is_digit);
  input.replace(first, last, awkward[below(awkward.size(), random)]);
}

void change_once(std::string& input, std::string_view other, const std::vector<std::string>& dictionary,
                 Random& random) {
  const std::size_t at = below(input.size() + 1, random);
  const std::size_t rest = input.size() - at;
  switch (random() % 9) {
    case 0:
      if (rest > 0) input[at] = static_cast<char>(input[at] ^ (1 << below(8, random)));
      return;
    case 1:
      if (rest > 0) input[at] = static_cast<char>(random());
      return;
    case 2:
      input.erase(at, length_up_to(rest, random));
      return;
    case 3:
      input.insert(at, input.substr(below(input.size() + 1, random), length_up_to(input.size(), random)));
      return;
    case 4:
    case 5:
      if (!dictionary.empty()) input.insert(at, dictionary[below(dictionary.size(), random)]);
      return;
    case 6: {
      const std::size_t from = below(other.size() + 1, random);
      input.replace(at, length_up_to(rest, random), other.substr(from, length_up_to(other.size() - from, random)));
      return;
    }
    case 7:
      replace_number(input, random);
      return;
    default:
      if (random() % 8 == 0) input.resize(at);
  }
}

}  // namespace

std::string mutate(std::string input, std::string_view other, const std::vector<std::string>& dictionary,
                   Random& random, std::size_t limit) {
  for (auto changes = 1 + random() % 8; changes > 0; --changes) change_once(input, other, dictionary, random);
  if (input.size() > limit) input.resize(limit);
  return input;
}

}  // namespace kiln::fuzz
