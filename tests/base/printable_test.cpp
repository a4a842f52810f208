#include "kiln/base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "kiln/base/error.h"

namespace kiln::printable_test {
namespace {

TEST(Printable, ATerminalIsToldNothing) {
  EXPECT_EQ(printable("\x1b]0;title\x07name"), "\\x1b]0;title\\x07name");
  EXPECT_EQ(printable(std::string("a\0b\r\x7f", 5)), "a\\x00b\\x0d\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m")
      << "a control of one character";
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6\xD8\x9C\xE2\x80\x8F"),
            "a\\u202eb\\u2066\\u061c\\u200f");
}

TEST(Printable, BytesThatAreNoTextAreNamed) {
  EXPECT_EQ(printable("\xFF\xC0\x80 \xED\xA0\x80"), "\\xff\\xc0\\x80 \\xed\\xa0\\x80");
  EXPECT_EQ(printable("cut \xE2\x80"), "cut \\xe2\\x80");
}

TEST(Printable, LinesStayAndOneLineIsOne) {
  EXPECT_EQ(printable("a\tb\nc"), "a b\nc");
  EXPECT_EQ(printable_line("a\tb\nc"), "a b\\nc");
}

TEST(Printable, NamesAreOneLineAndNotLong) {
  EXPECT_EQ(printable_name("a\nkiln: all is well"), "a\\nkiln: all is well");
  const std::string longest(200, 'x');
  EXPECT_EQ(printable_name(longest), longest);
  EXPECT_EQ(printable_name(longest + "x"), longest + "...");
  EXPECT_EQ(printable_name(longest.substr(1) + "\xC3\xB6"), longest.substr(1) + "...") << "no half of a letter";
}

TEST(Printable, TextOfAnyLanguageStays) {
  for (const char* text : {"", "plain \\ text", "größe 例 🔥", "\xC2\xA0"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, AMessageIsWhoeverPrintsIt) {
  const Error error(ErrorCode::parse_error, "node \x1b[2J", "see \xFF\nthere");
  EXPECT_EQ(error.message(), "node \\x1b[2J");
  EXPECT_EQ(error.hint(), "see \\xff\nthere");
  EXPECT_STREQ(error.what(), "node \\x1b[2J (see \\xff\nthere)");
}

}  // namespace
}  // namespace kiln::printable_test
