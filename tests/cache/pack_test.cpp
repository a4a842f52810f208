#include "kiln/cache/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cache_fixtures.h"

namespace kiln::cache::test::pack_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string version = "0.1.0";

Pack random_pack(std::mt19937_64& random) {
  std::vector<DeviceEntry> devices = {h200(), h100(), emulated()};
  std::vector<Record> records;
  const auto count = random() % 20;
  for (std::size_t i = 0; i < count; ++i) records.push_back(random_record(random, devices));
  if (random() % 3 == 0) devices[0].name = "renamed";
  return make_pack(devices, records);
}

TEST(Pack, ComesBackFromItsText) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const Pack pack = random_pack(random);
    const std::string text = print_pack(pack, "1.2.3");
    const ParsedPack parsed = parse_pack(text);
    ASSERT_THAT(parsed.refused, IsEmpty());
    EXPECT_EQ(parsed.library_version, "1.2.3");
    ASSERT_EQ(parsed.pack, pack);
    ASSERT_EQ(print_pack(parsed.pack, "1.2.3"), text);
  }
}

TEST(Pack, TextDoesNotDependOnTheOrderOfItsParts) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50; ++i) {
    std::vector<DeviceEntry> devices = {h200(), h100(), emulated()};
    std::vector<Record> records;
    for (int r = 0; r < 15; ++r) records.push_back(random_record(random, devices));
    const std::string text = print_pack(make_pack(devices, records), version);
    std::shuffle(records.begin(), records.end(), random);
    std::shuffle(devices.begin(), devices.end(), random);
    EXPECT_EQ(print_pack(make_pack(devices, records), version), text);
  }
}

TEST(Pack, MergeIsCommutativeAssociativeAndIdempotent) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const Pack a = random_pack(random), b = random_pack(random), c = random_pack(random);
    ASSERT_EQ(merge(a, b), merge(b, a));
    ASSERT_EQ(merge(merge(a, b), c), merge(a, merge(b, c)));
    ASSERT_EQ(merge(a, a), a);
    ASSERT_EQ(merge(merge(a, b), b), merge(a, b));
    ASSERT_EQ(merge(a, Pack{}), a);
  }
}

TEST(Pack, IsReadableLineByLine) {
  Record r = timed_record(request_line(7), "TILE=32", 1.25e-5);
  r.samples = {1.25e-5, 1.5e-5};
  r.spread = 0;
  r.error = "first\nsecond\tx";
  const std::string text = print_pack(make_pack({h200()}, {r}), version);
  EXPECT_EQ(text,
            "kiln-pack\t1\t0.1.0\n"
            "device\tNVIDIA H200 sm_90 132SM 141GB\tNVIDIA H200\t9.0\t132\treal\n"
            "request\t" +
                request_line(7) +
                "\n"
                "record\tconv_implicit_gemm\t0123456789abcdef0123456789abcdef\tTILE=32\ttimed\tmeasured\t1.25e-05\t0\t"
                "deterministic\t0\t64\t0\t32768\tfedcba9876543210fedcba9876543210\t13000\t13.0\t0.1.0\t"
                "2026-09-21T14:13:20.123Z\tmax error 1.2e-4, bound 3.1e-3\tfirst\\nsecond\\tx\t1.25e-05,1.5e-05\n"
                "end\n");
}

TEST(Pack, SaysWhatALineLacksBeforeIt) {
  const auto refusal = [](const std::string& lines) {
    return parse_pack("kiln-pack\t1\t0.1.0\n" + lines + "end\n").refused.at(0).text();
  };
  EXPECT_EQ(refusal("request\t" + request_line(7) + "\n"), "line 2: has no device line before it");
  EXPECT_EQ(refusal("record\ta\n"), "line 2: has no request line before it");
}

TEST(Pack, CannotHoldWhatCannotBeStored) {
  const Record good = timed_record(request_line(1), "TILE=32", 1e-5);
  Record bad = good;
  bad.seconds = std::nan("");
  EXPECT_THAT(error_of(ErrorCode::invalid_argument, [&] { make_pack({h200()}, {bad}); }), HasSubstr("seconds"));
  EXPECT_THAT(error_of(ErrorCode::invalid_argument, [&] { make_pack({h100()}, {good}); }), HasSubstr("not listed"));
  bad = good;
  bad.kind = TimeKind::modelled;
  EXPECT_THAT(error_of(ErrorCode::invalid_argument, [&] { make_pack({h200()}, {bad}); }), HasSubstr("modelled"));
}

TEST(Pack, ExportLeavesOutWhatIsNotAskedFor) {
  Database db = with_devices(Database::in_memory());
  Record fast = timed_record(request_line(1), "fast", 1e-5);
  Record slow = timed_record(request_line(1), "slow", 9e-5);
  Record lean = timed_record(request_line(1), "lean", 5e-5);
  fast.workspace_bytes = 1 << 20;
  slow.workspace_bytes = 1 << 20;
  Record crashed = timed_record(request_line(1), "crashed", 0);
  crashed.outcome = outcome::crashed;
  Record stale = fast;
  stale.algorithm_digest = "old";
  Record elsewhere = fast;
  elsewhere.device = h100().id;
  const std::vector<Record> records = {fast, slow, lean, crashed, stale, elsewhere};
  db.insert(records);
  const auto configs = [&](const ExportOptions& options) {
    std::vector<std::string> result;
    for (const Record& r : export_pack(db, options).records) {
      EXPECT_EQ(r.session, "");
      result.push_back(r.config + "@" + r.device.substr(7, 4) + "/" + r.algorithm_digest.substr(0, 3));
    }
    return result;
  };
  EXPECT_EQ(configs({}).size(), 6u);
  ExportOptions options;
  options.winners_only = true;
  options.devices = {h200().id};
  options.is_current = [](std::string_view, std::string_view digest) { return digest != "old"; };
  options.samples = false;
  EXPECT_THAT(configs(options), ::testing::ElementsAre("crashed@H200/012", "fast@H200/012", "lean@H200/012"));
  EXPECT_THAT(export_pack(db, options).records[0].samples, IsEmpty());
  EXPECT_EQ(export_pack(db, options).devices.size(), 1u);
}

TEST(Pack, ImportsIntoADatabaseAndComesOutTheSame) {
  std::mt19937_64 random(4);
  const Pack pack = random_pack(random);
  Database db = Database::in_memory();
  const MergeResult first = db.merge(pack);
  EXPECT_EQ(first.added, static_cast<std::int64_t>(pack.records.size()));
  EXPECT_EQ(export_pack(db), pack);
  const MergeResult second = db.merge(pack);
  EXPECT_EQ(second.kept, static_cast<std::int64_t>(pack.records.size()));
  EXPECT_EQ(export_pack(db), pack);
}

TEST(Pack, FilesAreReplacedWholeOrNotAtAll) {
  const ScratchFolder folder;
  std::mt19937_64 random(5);
  const Pack pack = random_pack(random);
  write_file(folder.file("a.pack"), "old");
  write_pack_file(folder.file("a.pack"), pack, version);
  EXPECT_EQ(read_pack_file(folder.file("a.pack")).pack, pack);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "nothing is left beside it";
  EXPECT_THAT(error_of(ErrorCode::io_error, [&] { write_pack_file(folder.file("no/folder"), pack, version); }),
              HasSubstr("no/folder"));
  EXPECT_THAT(error_of(ErrorCode::io_error, [&] { read_pack_file(folder.file("missing")); }), HasSubstr("missing"));
  write_file(folder.file("b.pack"), "not a pack\n");
  EXPECT_THAT(error_of(ErrorCode::parse_error, [&] { read_pack_file(folder.file("b.pack")); }),
              HasSubstr("b.pack: line 1"));
}

TEST(Pack, RequireCompleteRefusesAPackWithRefusedLines) {
  EXPECT_EQ(require_complete(parse_pack("kiln-pack\t1\t0\nend\n")), Pack{});
  const std::string text = "kiln-pack\t1\t0\nnonsense\nmore\nend\n";
  EXPECT_THAT(error_of(ErrorCode::parse_error, [&] { require_complete(parse_pack(text)); }),
              StartsWith("line 2: is not a device, request, record or end line: 'nonsense' (and 1 more lines)"));
}

}  // namespace
}  // namespace kiln::cache::test::pack_test
