// Where results are at the end of a command when another process keeps the database locked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "database.h"

namespace kiln::cli::keep_results_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto nobody_stops = [] { return false; };

class KeepResults : public testing::Test {
 protected:
  KeepResults() {
    std::filesystem::create_directory(folder_);
    cache::Database::open(path);
    sqlite3_open(path.c_str(), &holder_);
    set_lock("BEGIN IMMEDIATE");
    database.put_device({.id = "gpu", .name = "GPU", .cc_major = 9, .cc_minor = 0, .sms = 1, .emulated = false});
    EXPECT_EQ(database.add_quarantine(barred), cache::Kept::in_memory);
  }
  ~KeepResults() override {
    sqlite3_close(holder_);
    std::filesystem::remove_all(folder_);
  }

  void set_lock(const char* statement) {
    EXPECT_EQ(sqlite3_exec(holder_, statement, nullptr, nullptr, nullptr), SQLITE_OK);
  }

  std::vector<std::string> files_beside() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("tuning.db.unkept-") && name.ends_with(".db")) found.push_back(entry.path());
    }
    return found;
  }

 private:
  const std::string folder_ = testing::TempDir() + "keep_results";
  sqlite3* holder_ = nullptr;

 protected:
  const std::string path = folder_ + "/tuning.db";
  const cache::Quarantine barred = {"digest", "gpu", "1", "2", "why", 1};
  cache::Database database = cache::Database::open(path, {.busy_timeout = 20ms});
};

TEST_F(KeepResults, TheyAreStoredOnceTheLockIsGone) {
  const std::jthread letting_go([this] {
    std::this_thread::sleep_for(200ms);
    set_lock("COMMIT");
  });
  EXPECT_EQ(keep_results(database, 60s, nobody_stops), path);
  EXPECT_THAT(files_beside(), testing::IsEmpty());
  EXPECT_THAT(cache::Database::open(path).quarantine(), testing::ElementsAre(barred));
}

TEST_F(KeepResults, ElseTheyAreWrittenBesideAndTheMessageSaysHowToMergeThem) {
  testing::internal::CaptureStderr();
  const std::string where = keep_results(database, 1200ms, nobody_stops);
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_EQ(files_beside().size(), 1u);
  const std::string beside = files_beside().front();
  EXPECT_EQ(where, beside + ", to be merged into " + path);
  EXPECT_THAT(said, HasSubstr("waiting for another process that keeps " + path + " locked"));
  EXPECT_THAT(said, HasSubstr("kiln cache merge --db '" + path + "' --own '" + beside + "'"));
  EXPECT_THAT(cache::Database::open(beside).quarantine(), testing::ElementsAre(barred));
}

TEST_F(KeepResults, InMemoryFromTheStartThereIsNothingToWaitFor) {
  cache::Database memory = cache::Database::in_memory();
  EXPECT_EQ(keep_results(memory, 60s, nobody_stops), "memory only, lost at the end");
}

}  // namespace
}  // namespace kiln::cli::keep_results_test
