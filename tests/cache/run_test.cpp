// Records of tuning runs in their database, for those who look at it meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_fixtures.h"
#include "kiln/cache/database.h"
#include "schema.h"

namespace kiln::cache::test::run_test {
namespace {

const std::vector<std::string> two_requests = {request_line(1), request_line(2)};

Session session(const std::string& id, std::int64_t started_ms) {
  return {id, h200().id, "plan", "0.1.0", started_ms, std::nullopt};
}

cache::Run run(const std::string& id, const std::string& part) {
  return {id, "model.onnx", part, "node7:1", 100, std::nullopt};
}

using Counts = std::map<LayerState, std::int64_t>;

TEST(Run, IsSeenByOthersWhileItIsAtWork) {
  const ScratchFolder folder;
  Database writer = with_devices(Database::open(folder.file("a.db")));
  writer.begin_session(session("s", 90));
  EXPECT_EQ(writer.begin_run(run("s", "0/2"), two_requests), Kept::durably);
  const auto seen = [&] { return Database::open(folder.file("a.db"), {.mode = OpenMode::read_only}).runs(); };
  ASSERT_EQ(seen().size(), 1u);
  EXPECT_EQ(seen()[0].session, session("s", 90));
  EXPECT_EQ(seen()[0].run, run("s", "0/2"));
  EXPECT_EQ(seen()[0].layers, (Counts{{LayerState::waiting, 2}}));

  const std::vector<RunLayer> changed = {{request_line(1), LayerState::running, ""},
                                         {request_line(1), LayerState::done, ""},
                                         {request_line(2), LayerState::failed, "why\nin two lines"}};
  writer.report_run("s", 200, 12.5, changed);
  EXPECT_EQ(seen()[0].run.seen_ms, 200);
  EXPECT_EQ(seen()[0].run.seconds_left, 12.5);
  EXPECT_EQ(seen()[0].layers, (Counts{{LayerState::done, 1}, {LayerState::failed, 1}}));
  EXPECT_EQ(seen()[0].failed, (std::vector<RunLayer>{changed[2]}));
  writer.end_session("s", 300);
  EXPECT_EQ(seen()[0].session.ended_ms, 300);
}

TEST(Run, OfTheSameWorkAndPartOnTheSameDeviceReplacesTheEarlierOne) {
  const ScratchFolder folder;
  Database db = with_devices(Database::open(folder.file("a.db")));
  const auto begin = [&](const std::string& id, const std::string& device, const std::string& part,
                         const std::string& host) {
    Session begun = session(id, 90);
    begun.device = device;
    db.begin_session(begun);
    cache::Run asked = run(id, part);
    asked.host = host;
    db.begin_run(asked, two_requests);
  };
  begin("1", h200().id, "0/2", "node7:1");
  begin("2", h200().id, "1/2", "node7:1");
  begin("3", h100().id, "0/2", "node7:1");
  begin("4", h200().id, "0/2", "node7:2");
  begin("5", h200().id, "0/2", "node7:2");  // another card of the same kind
  std::vector<std::string> left;
  for (const RunProgress& each : db.runs()) {
    left.push_back(each.session.id);
    const bool shares = each.session.id == "5";
    EXPECT_EQ(each.layers, shares ? Counts() : Counts({{LayerState::waiting, 2}}));
  }
  EXPECT_THAT(left, testing::ElementsAre("2", "3", "4", "5"));
}

TEST(Run, OfEqualDevicesOfOneProcessSharesItsLayers) {
  const ScratchFolder folder;
  Database db = with_devices(Database::open(folder.file("a.db")));
  for (const char* id : {"1", "2"}) {
    db.begin_session(session(id, 90));
    db.begin_run(run(id, ""), two_requests);
  }
  const RunLayer done = {request_line(2), LayerState::done, ""};
  db.report_run("2", 200, {}, {&done, 1});
  const std::vector<RunProgress> runs = db.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].layers, (Counts{{LayerState::waiting, 1}}));
  EXPECT_EQ(runs[1].layers, (Counts{{LayerState::done, 1}})) << "who takes a layer up has it, and it counts once";
}

TEST(Run, IsOfNobodyInAFileOfAnOlderKiln) {
  const ScratchFolder folder;
  { Database db = with_devices(Database::open(folder.file("old.db"))); }
  Connection::open(folder.file("old.db"), SQLITE_OPEN_READWRITE, std::chrono::milliseconds(0))
      .execute("DROP TABLE runs; DROP TABLE run_layers; PRAGMA user_version = 4");
  Announcements announced;
  const Database old = Database::open(folder.file("old.db"), {.mode = OpenMode::read_only}, announced.listener());
  EXPECT_TRUE(old.runs().empty());
  EXPECT_FALSE(old.devices().empty());
  EXPECT_TRUE(announced.seen.empty()) << announced.seen[0].text();
}

TEST(Run, GoesWithItsSessionWhenThatIsPruned) {
  const ScratchFolder folder;
  Database db = with_devices(Database::open(folder.file("a.db")));
  for (const char* id : {"ended", "at work"}) {
    db.begin_session(session(id, 90));
    db.begin_run(run(id, id), two_requests);
  }
  db.end_session("ended", 95);
  db.prune({});
  ASSERT_EQ(db.runs().size(), 1u);
  EXPECT_EQ(db.runs()[0].session.id, "at work");
  Connection raw = Connection::open(folder.file("a.db"), SQLITE_OPEN_READWRITE, std::chrono::milliseconds(0));
  EXPECT_EQ(raw.integer_of("SELECT COUNT(*) FROM run_layers"), 2);
}

TEST(Run, IsKeptOutOfMerges) {
  const ScratchFolder folder;
  Database from = with_devices(Database::open(folder.file("a.db")));
  from.begin_session(session("s", 90));
  from.begin_run(run("s", ""), two_requests);
  Database into = Database::open(folder.file("b.db"));
  into.merge(from);
  EXPECT_TRUE(into.runs().empty());
}

TEST(Run, OfADatabaseInMemoryIsNotKept) {
  Database db = with_devices(Database::in_memory());
  db.begin_session(session("s", 90));
  EXPECT_EQ(db.begin_run(run("s", ""), two_requests), Kept::in_memory);
  EXPECT_EQ(db.report_run("s", 200, {}, {}), Kept::in_memory);
  EXPECT_TRUE(db.runs().empty()) << "nobody else can look into it";
}

}  // namespace
}  // namespace kiln::cache::test::run_test
