#include "entry.h"

#include <gtest/gtest.h>

#include "store_folder.h"

namespace kiln::store::entry_test {
namespace {

const std::string content("some\nbytes\0with a zero", 22);

TEST(Entry, GivesItsContentBack) {
  const std::string key = key_of("a");
  for (const std::string& text : {content, std::string(), std::string("\n")}) {
    EXPECT_EQ(entry_content(key, entry_header(key, text) + text), text);
  }
}

TEST(Entry, CutOffAnywhereOrLongerIsNone) {
  const std::string key = key_of("a");
  const std::string bytes = entry_header(key, content) + content;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(entry_content(key, bytes.substr(0, length))) << length;
  }
  EXPECT_FALSE(entry_content(key, bytes + "x"));
}

TEST(Entry, WithAnyBitFlippedIsNone) {
  const std::string key = key_of("a");
  const std::string bytes = entry_header(key, content) + content;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(entry_content(key, damaged)) << "bit " << bit;
  }
}

TEST(Entry, OfAnotherKeyIsNone) {
  EXPECT_FALSE(entry_content(key_of("b"), entry_header(key_of("a"), content) + content));
}

}  // namespace
}  // namespace kiln::store::entry_test
