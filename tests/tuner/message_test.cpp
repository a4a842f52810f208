#include "message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "variant.h"

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

// A MiB of a line, and a GiB behind it.
TEST(Messages, HaveALineAndAPayloadUpToTheirLimits) {
  MessageReader reader;
  reader.feed(std::string(1 << 20, 'x'));
  EXPECT_EQ(reader.next(), std::nullopt) << "its end may come";
  reader.feed("x");
  EXPECT_THROW(reader.next(), Error);
  MessageReader large, larger;
  large.feed(R"({"payload": 1073741824})"
             "\n");
  EXPECT_EQ(large.next(), std::nullopt);
  larger.feed(R"({"payload": 1073741825})"
              "\n");
  EXPECT_THROW(larger.next(), Error);
}

TEST(Messages, SayWhatWasSentInTheirPlace) {
  const std::string noise = std::string(80, 'a') + std::string(80, 'b');
  MessageReader reader;
  reader.feed(noise + "\n");
  try {
    reader.next();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "this is no message of a worker: '" + std::string(80, 'a') + "'");
  }
}

TEST(Variants, ComeBackFromTheirBytesAndAreRefusedWhereTheyAreCut) {
  const auto compiled = [](const std::string& source) {
    execution::CompiledProgram program;
    program.program.sources = {source};
    return program;
  };
  for (const bool has_stand_in : {false, true}) {
    Variant variant{compiled("one"), std::nullopt};
    if (has_stand_in) variant.stand_in = compiled("another");
    const std::string bytes = serialise(variant);
    const Variant again = variant_from(bytes);
    EXPECT_EQ(again.program.program.sources, variant.program.program.sources);
    EXPECT_EQ(again.stand_in.has_value(), has_stand_in);
    const size_t first = bytes.find('\n') + 1 + std::stoul(bytes);  // the end of the first program
    for (size_t length = 0; length < bytes.size(); ++length) {
      if (length == first) continue;
      EXPECT_THROW((void)variant_from(std::string_view(bytes).substr(0, length)), Error) << length;
    }
  }
  EXPECT_THROW((void)variant_from("x\n"), Error);
}

TEST(Messages, CarryALogThatIsNotUtf8) {
  MessageReader reader;
  reader.feed(encode({{{"log", "caf\xe9"}}, {}}));
  EXPECT_TRUE(reader.next());
}

}  // namespace
}  // namespace kiln::tuner::message_test
