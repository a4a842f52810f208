// Status and last errors of kiln.h.
#include <gmock/gmock.h>

#include <barrier>
#include <set>
#include <thread>

#include "fixture.h"

namespace kiln::capi::errors_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CApiStatus, HasADistinctNameForEveryValue) {
  std::set<std::string> names;
  for (kiln_status status = KILN_OK; status <= KILN_NOT_FINITE; ++status) names.insert(kiln_status_name(status));
  EXPECT_EQ(names.size(), 11u);
  EXPECT_STREQ(kiln_status_name(KILN_OK), "ok");
  EXPECT_STREQ(kiln_status_name(KILN_INVALID_ARGUMENT), "invalid argument");
  for (kiln_status unknown : {-1, 11, 0x7fffffff}) EXPECT_STREQ(kiln_status_name(unknown), "unknown status");
}

TEST(CApiLastError, IsEmptyUntilACallFailsAndStaysUntilTheNextFailure) {
  std::thread([] {
    EXPECT_STREQ(kiln_last_error(), "");
    EXPECT_STREQ(kiln_last_hint(), "");
    char* key = nullptr;
    EXPECT_EQ(kiln_request_key("softmax_forward x=f32:0x", &key), KILN_PARSE_ERROR);
    EXPECT_EQ(key, nullptr) << "outputs of a failed call stay as they were";
    const std::string message = kiln_last_error();
    EXPECT_THAT(message, HasSubstr("column"));
    EXPECT_EQ(kiln_request_key("softmax_forward x=f32:2x4", &key), KILN_OK);
    EXPECT_THAT(key, StartsWith("softmax_forward x=f32:2x4:nc y="));
    kiln_string_destroy(key);
    EXPECT_EQ(kiln_last_error(), message) << "a call that succeeds leaves it";
  }).join();
}

TEST(CApiLastError, IsSetByLibrariesOverThisOne) {
  kiln_set_last_error("set ContextOptions::locked", "or not");
  EXPECT_STREQ(kiln_last_error(), "set kiln_context_options.locked");
  EXPECT_STREQ(kiln_last_hint(), "or not");
  kiln_set_last_error(nullptr, nullptr);
  EXPECT_STREQ(kiln_last_error(), "");
  EXPECT_STREQ(kiln_last_hint(), "");
}

TEST(CApiLastError, BelongsToEachThread) {
  constexpr int count = 8;
  std::barrier all(count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([i, &all] {
      const std::string mine = "operation_" + std::to_string(i);
      for (int round = 0; round < 50; ++round) {
        char* key = nullptr;
        EXPECT_EQ(kiln_request_key(mine.c_str(), &key), KILN_PARSE_ERROR);
        all.arrive_and_wait();  // every thread has failed by now
        EXPECT_THAT(kiln_last_error(), HasSubstr(mine));
        all.arrive_and_wait();
      }
    });
  }
}

}  // namespace
}  // namespace kiln::capi::errors_test
