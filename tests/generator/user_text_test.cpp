// Tokens of user code, as far as requests and models do not show them.
#include "user_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace kiln::user_text_test {
namespace {

std::string_view last_of(std::string_view text) {
  return tokens_of_user_code(text).back().text;
}

// Each text ends where a reader that looks ahead would meet the next character of the buffer.
TEST(UserText, EndsWithItsLastCharacter) {
  const std::string_view number = "x + 12", exponent = "1e+5", word = "x + yz", quotient = "x // y";
  EXPECT_EQ(last_of(number.substr(0, 5)), "1");
  EXPECT_EQ(last_of(exponent.substr(0, 2)), "1e");
  EXPECT_EQ(last_of(word.substr(0, 5)), "y");
  EXPECT_EQ(last_of(quotient.substr(0, 3)), "/");
}

}  // namespace
}  // namespace kiln::user_text_test
