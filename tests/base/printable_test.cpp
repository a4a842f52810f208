#include "kiln/base/printable.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

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

// By the rule of RFC 3629: six bits in each byte but the first, which says how many there are.
std::string encoded(uint32_t code, int bytes) {
  if (bytes == 1) return {static_cast<char>(code)};
  std::string text;
  for (int i = 1; i < bytes; ++i, code >>= 6) text.insert(text.begin(), static_cast<char>(0x80 | (code & 0x3f)));
  constexpr int leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  text.insert(text.begin(), static_cast<char>(leads[bytes] | static_cast<int>(code)));
  return text;
}

int shortest(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(Utf8, IsReadForEveryCodePointInItsShortestFormAlone) {
  for (uint32_t code = 0; code < 0x200000; code += code < 0x12000 ? 1 : 0xff) {
    const bool is_valid = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    const int bytes = shortest(code);
    const std::string text = encoded(code, bytes);
    ASSERT_EQ(sequence_length(text + "x"), is_valid ? text.size() : 0U) << code;
    for (int longer = bytes + 1; longer <= 4; ++longer) ASSERT_EQ(sequence_length(encoded(code, longer)), 0U) << code;
    if (!is_valid) continue;
    ASSERT_EQ(code_point(text), code);
    for (size_t i = 1; i < text.size(); ++i) {
      ASSERT_EQ(sequence_length(text.substr(0, i)), 0U) << code << " cut off";
      for (const char wrong : {'\x7f', '\xC0'}) {
        std::string broken = text;
        broken[i] = wrong;
        ASSERT_EQ(sequence_length(broken), 0U) << code << ", byte " << i;
      }
    }
  }
  for (const uint32_t code : {0x10FFFFU, 0x110000U, 0x13FFFFU, 0x140000U}) {
    EXPECT_EQ(sequence_length(encoded(code, 4)), code <= 0x10FFFF ? 4U : 0U) << code;
  }
  for (int lead = 0xF5; lead <= 0xFF; ++lead)
    EXPECT_EQ(sequence_length(static_cast<char>(lead) + std::string("\x80\x80\x80")), 0U);
}

// Unicode: controls C1, marks and isolates of direction, separators of lines and paragraphs.
TEST(Utf8, HidesTheControlsThatReorderTextOrBreakLines) {
  std::vector<uint32_t> hidden;
  for (uint32_t code = 0x80; code < 0x3000; ++code) {
    if (is_hidden(encoded(code, shortest(code)))) hidden.push_back(code);
  }
  std::vector<uint32_t> expected;
  const auto add = [&](uint32_t first, uint32_t last) {
    for (uint32_t code = first; code <= last; ++code) expected.push_back(code);
  };
  add(0x80, 0x9F);
  add(0x61C, 0x61C);
  add(0x200E, 0x200F);
  add(0x2028, 0x202E);
  add(0x2066, 0x2069);
  EXPECT_EQ(hidden, expected);
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
  EXPECT_EQ(printable_name(longest.substr(3) + "🔥x"), longest.substr(3) + "...") << "three bytes of four";
  EXPECT_EQ(printable_name(longest.substr(4) + "🔥x"), longest.substr(4) + "🔥...");
  std::string shown;
  for (int i = 0; i < 196; ++i) shown += "\\x80";
  EXPECT_EQ(printable_name(std::string(300, '\x80')), shown + "...") << "a letter has four bytes at most";
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
