#include "recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kiln/base/error.h"

namespace kiln {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Recorder, WritesEachRequestOnceAndAppends) {
  const std::string path = testing::TempDir() + "kiln_recorder_test.txt";
  std::filesystem::remove(path);
  {
    Recorder recorder(path);
    for (const char* key : {"a", "b", "a"}) EXPECT_EQ(recorder.record(key), std::nullopt);
  }
  EXPECT_EQ(Recorder(path).record("c"), std::nullopt);
  EXPECT_EQ(contents(path), "a\nb\nc\n");
  std::filesystem::remove(path);
}

TEST(Recorder, EndsWhereALineCannotBeWritten) {
  Recorder recorder("/dev/full");
  EXPECT_THAT(recorder.record("a"), testing::Optional(testing::HasSubstr("/dev/full")));
  EXPECT_EQ(recorder.record("b"), std::nullopt) << "it is said once";
}

TEST(Recorder, NamesAFileThatCannotBeWritten) {
  try {
    Recorder recorder("/nonexistent-folder/record.txt");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io_error);
    EXPECT_THAT(error.what(), testing::HasSubstr("/nonexistent-folder/record.txt"));
  }
}

}  // namespace
}  // namespace kiln
