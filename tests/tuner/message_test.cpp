#include "message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::tuner::message_test {
namespace {

TEST(Messages, ArriveWholeHoweverTheyAreCut) {
  const Message first{{{"do", "compile"}, {"text", "line\nbreak"}}, std::string("\0\n{}", 4)};
  const Message second{{{"do", "open"}}, {}};
  const std::string bytes = encode(first) + encode(second);
  for (size_t cut = 1; cut <= bytes.size(); ++cut) {
    MessageReader reader;
    std::vector<Message> got;
    for (size_t at = 0; at < bytes.size(); at += cut) {
      reader.feed(std::string_view(bytes).substr(at, cut));
      while (auto message = reader.next()) got.push_back(std::move(*message));
    }
    ASSERT_EQ(got.size(), 2U) << cut;
    EXPECT_EQ(got[0].payload, first.payload);
    EXPECT_EQ(got[0].fields.at("text"), "line\nbreak");
    EXPECT_EQ(got[1].fields.at("do"), "open");
    EXPECT_EQ(got[1].payload, "");
  }
}

TEST(Messages, ThatAreNoneAreRefused) {
  for (const char* text : {"Segmentation fault\n", "[1]\n", "42\n", "{\"payload\": -1}\n", "{\"payload\": \"x\"}\n",
                           "{\"payload\": 99999999999}\n", "\n"}) {
    MessageReader reader;
    reader.feed(text);
    EXPECT_THROW(reader.next(), Error) << text;
  }
  MessageReader endless;
  endless.feed(std::string(3 << 20, 'x'));
  EXPECT_THROW(endless.next(), Error);
}

TEST(Messages, CarryALogThatIsNotUtf8) {
  MessageReader reader;
  reader.feed(encode({{{"log", "caf\xe9"}}, {}}));
  EXPECT_TRUE(reader.next());
}

}  // namespace
}  // namespace kiln::tuner::message_test
