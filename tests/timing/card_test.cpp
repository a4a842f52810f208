#include "kiln/timing/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_card("mine", text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Card, BuiltInOnesAreWhole) {
  ASSERT_THAT(card_names(), testing::Contains("a100"));
  for (const std::string& name : card_names()) {
    const Card card = find_card(name);
    EXPECT_EQ(card.name, name);
    EXPECT_GT(card.sms, 0U);
    EXPECT_FALSE(card.carveout_kb.empty());
  }
}

TEST(Card, AnUnknownNameListsThoseThatThereAre) {
  try {
    find_card("a1000");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("there is a100"));
  }
}

TEST(Card, SaysWhatIsWrongInAFile) {
  EXPECT_THAT(message_of("smss 3"), testing::HasSubstr("line 1: smss is unknown, or stands twice"));
  EXPECT_THAT(message_of("sms 3\nsms 3"), testing::HasSubstr("line 2: sms is unknown, or stands twice"));
  EXPECT_THAT(message_of("sms many"), testing::HasSubstr("sms has no number"));
  EXPECT_THAT(message_of("sms 3,4"), testing::HasSubstr("sms has no number"));
  EXPECT_THAT(message_of("# nothing\n"), testing::HasSubstr("is missing"));
}

}  // namespace
}  // namespace kiln::timing
