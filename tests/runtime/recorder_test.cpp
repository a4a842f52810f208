#include "recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "kiln/base/error.h"
#include "kiln/generator/request.h"

namespace kiln::recorder_test {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A file of its own, and what `kiln tune` reads from it.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() { std::filesystem::remove(path_); }
  ~RecorderTest() override { std::filesystem::remove(path_); }

  int64_t calls_of(const std::string& key) const {
    int64_t calls = 0;
    for (const RequestLine& line : parse_requests(contents(path_))) {
      calls += line.request.key() == key ? line.count : 0;
    }
    return calls;
  }

  const std::string path_ = testing::TempDir() + "kiln_recorder_test.txt";
  const std::string a_ = Request::parse("softmax_forward x=f32:3x40").key();
  const std::string b_ = Request::parse("softmax_forward x=f32:3x41").key();
};

TEST_F(RecorderTest, WritesEachRequestOnceAndAppends) {
  {
    Recorder recorder(path_);
    for (const char* key : {"a", "b", "a"}) EXPECT_EQ(recorder.record(key), std::nullopt);
  }
  EXPECT_EQ(Recorder(path_).record("c"), std::nullopt);
  EXPECT_EQ(contents(path_), "a\nb\nc\n");
}

TEST_F(RecorderTest, CountsCallsInFewLines) {
  {
    Recorder recorder(path_);
    recorder.record(a_);
    recorder.record(b_);
    for (int i = 0; i < 1000; ++i) recorder.count_of(a_)->add();
    recorder.count_of(b_);
  }
  EXPECT_EQ(calls_of(a_), 1000);
  EXPECT_EQ(calls_of(b_), 1) << "it was asked for";
  const std::string text = contents(path_);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 2 + 10);
}

TEST_F(RecorderTest, CountsWhatIsCalledAfterItsEnd) {
  std::shared_ptr<CallCount> count;
  {
    Recorder recorder(path_);
    recorder.record(a_);
    count = recorder.count_of(a_);
  }
  for (int i = 0; i < 7; ++i) count->add();
  count.reset();
  EXPECT_EQ(calls_of(a_), 7);
}

TEST_F(RecorderTest, AddsUpWhatSeveralThreadsAndSeveralRecordersCount) {
  const auto record = [&] {
    Recorder recorder(path_);
    recorder.record(a_);
    const std::shared_ptr<CallCount> count = recorder.count_of(a_);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int j = 0; j < 333; ++j) count->add();
      });
  };
  std::jthread other(record);
  record();
  other.join();
  EXPECT_EQ(calls_of(a_), 2 * 4 * 333);
}

TEST_F(RecorderTest, AProcessThatIsKilledHasWrittenItsRequestsAndHalfOfItsCalls) {
  const pid_t child = ::fork();
  if (child == 0) {
    Recorder recorder(path_);
    recorder.record(a_);
    recorder.record(b_);
    for (int i = 0; i < 100; ++i) recorder.count_of(a_)->add();
    ::raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(calls_of(b_), 1);
  EXPECT_GE(calls_of(a_), 50);
  EXPECT_LE(calls_of(a_), 100);
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
}  // namespace kiln::recorder_test
