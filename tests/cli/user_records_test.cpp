// A database with records of user templates, in the hands of somebody who has not named them.
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "program.h"

namespace kiln::cli::user_records_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Records of one request: a user template's times and failure, and those that an older Kiln made of an algorithm that
// has changed.
class UserRecordsTest : public ProgramTest {
 protected:
  UserRecordsTest() {
    auto database = cache::Database::open(path("tuning.db"));
    database.put_device({"fake", "Fake", 9, 0, 132, true});
    database.insert(std::array{record("theirs", "TILE=1", 1e-6), record("theirs", "TILE=2", 0),
                               record("softmax_simple", "THREADS=128", 2e-6)});
  }

  static cache::Record record(const std::string& algorithm, const std::string& config, double seconds) {
    cache::Record record;
    record.request = "softmax_forward x=f32:3x100:nc y=f32:3x100:nc axis=1 mode=accurate alpha=1 beta=0";
    record.device = "fake";
    record.algorithm = algorithm;
    record.algorithm_digest = "not-the-library's";
    record.config = config;
    record.outcome = seconds > 0 ? cache::outcome::timed : cache::outcome::wrong_result;
    record.kind = cache::TimeKind::modelled;
    record.seconds = seconds;
    record.driver_version = record.nvrtc_version = record.kiln_version = "13.0";
    record.created_ms = 1;
    return record;
  }

  std::vector<std::string> stored() const {
    std::vector<std::string> names;
    const auto database = cache::Database::open(path("tuning.db"), {.mode = cache::OpenMode::read_only});
    for (const cache::Record& one : database.records(record("", "", 0).request, "fake")) {
      names.push_back(one.algorithm + " " + one.config);
    }
    return names;
  }
};

TEST_F(UserRecordsTest, PruningWhatIsStaleLeavesThem) {
  const std::vector<std::string> prune = {"cache", "prune", "--stale", "--db", path("tuning.db")};
  const Outcome outcome = kiln(prune);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("gone: 1 records"));
  EXPECT_THAT(stored(), testing::UnorderedElementsAre("theirs TILE=1", "theirs TILE=2"));
}

TEST_F(UserRecordsTest, APackOfTheWinnersHoldsThem) {
  const Outcome outcome = kiln({"cache", "export", "--winners", "--db", path("tuning.db"), path("tuned.pack")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string pack = read("tuned.pack");
  EXPECT_THAT(pack, HasSubstr("theirs"));
  EXPECT_THAT(pack, HasSubstr("wrong_result")) << "what bars a variant is of use wherever the pack goes";
  EXPECT_THAT(pack, Not(HasSubstr("softmax_simple")));
}

}  // namespace
}  // namespace kiln::cli::user_records_test
