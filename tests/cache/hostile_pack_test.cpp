// Packs made to do harm: huge, endless, of strange files, and what they may cost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "../support/file_locks.h"
#include "cache_fixtures.h"
#include "kiln/base/file_descriptor.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"
#include "time_limits.h"

namespace kiln::cache::test::hostile_pack_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing_support::limit_in_this_build;
using testing_support::processor_seconds;

const std::string header = "kiln-pack\t1\t0.1.0\n";

std::string good_text() {
  return print_pack(make_pack({h200()}, {timed_record(request_line(1), "TILE=16", 1e-5)}), "0.1.0");
}

std::vector<std::string> problems_of_file(const std::string& path) {
  Winners winners(h200());
  winners.load_pack(path);
  return winners.problems();
}

TEST(HostilePack, ALineWithoutEndIsRefusedByNumberAndNotKeptInMemory) {
#ifdef __SANITIZE_THREAD__
  constexpr long allowed = 6 * 16 * 1024;  // KiB; the thread sanitizer keeps four bytes and more for each
#else
  constexpr long allowed = 16 * 1024;  // KiB
#endif
  const ScratchFolder folder;
  {
    std::ofstream out(folder.file("long.pack"), std::ios::binary);
    const std::string text = good_text(), piece(1 << 20, 'x');
    const std::size_t at = text.find("request\t");
    out << text.substr(0, at) << "request\t";
    for (int i = 0; i < 64; ++i) out << piece;
    out << "\n" << text.substr(at);
  }
  const int status = in_child(
      [&] {
        struct rusage before = {};
        getrusage(RUSAGE_SELF, &before);
        Winners winners(h200());
        winners.load_pack(folder.file("long.pack"));
        struct rusage after = {};
        getrusage(RUSAGE_SELF, &after);
        const auto problems = winners.problems();
        if (problems.size() != 1 || problems[0].find("line 3: has ") == std::string::npos) return 1;
        if (!winners.find(request_line(1))) return 2;
        return after.ru_maxrss - before.ru_maxrss < allowed ? 0 : 3;
      },
      false);
  EXPECT_EQ(status, 0);
  const ParsedPack parsed = read_pack_file(folder.file("long.pack"));
  ASSERT_THAT(parsed.refused, SizeIs(1));
  EXPECT_EQ(parsed.refused[0].line, 3u);
  EXPECT_THAT(parsed.pack.records, SizeIs(1));
}

TEST(HostilePack, LinesAroundTheLimitAreToldApartAtAnyPlaceInTheFile) {
  const ScratchFolder folder;
  for (const std::size_t length : {max_pack_line - 1, max_pack_line, max_pack_line + 1, max_pack_line + 57,
                                   max_pack_line + 4096, 2 * max_pack_line, 4 * max_pack_line + 1}) {
    for (const std::size_t before : {std::size_t{0}, std::size_t{1}, std::size_t{262'100}, std::size_t{262'144}}) {
      std::string text = good_text();
      const std::string comment = before == 0 ? "" : "#" + std::string(before - 1, 'c') + "\n";
      text.insert(header.size(), comment + "strange\t" + std::string(length, 'y') + "\n");
      write_file(folder.file("a.pack"), text);
      const ParsedPack parsed = read_pack_file(folder.file("a.pack"));
      ASSERT_THAT(parsed.refused, SizeIs(1)) << length << " after " << before;
      EXPECT_EQ(parsed.refused[0].line, before == 0 ? 2u : 3u);
      EXPECT_THAT(parsed.pack.records, SizeIs(1)) << length << " after " << before;
    }
  }
}

TEST(HostilePack, AnEndlessListOfBadLinesIsCountedNotListed) {
  std::string text = header;
  for (int i = 0; i < 100'000; ++i) text += "x\n";
  const ParsedPack parsed = parse_pack(text + "end\n");
  EXPECT_THAT(parsed.refused, SizeIs(max_listed_refusals));
  EXPECT_EQ(parsed.refused_lines, 100'000u);
  Winners winners(h200());
  winners.load_pack_text(text + "end\n", "p");
  EXPECT_LT(winners.problems().size(), 30u);
}

TEST(HostilePack, MoreDevicesThanAnyoneHasAreRefused) {
  std::string text = header;
  for (std::size_t i = 0; i < max_pack_devices + 5; ++i) text += fmt::format("device\tid{}\tname\t9.0\t1\treal\n", i);
  const ParsedPack parsed = parse_pack(text + "end\n");
  EXPECT_THAT(parsed.pack.devices, SizeIs(max_pack_devices));
  ASSERT_EQ(parsed.refused_lines, 5u);
  EXPECT_EQ(parsed.refused[0].line, max_pack_devices + 2);
  EXPECT_THAT(parsed.refused[0].reason, HasSubstr("devices"));
}

TEST(HostilePack, MoreDevicesThanAnyoneHasAreNotUsedOnOpeningEither) {
  std::string text = header;
  for (std::size_t i = 0; i < max_pack_devices; ++i) text += fmt::format("device\tother {}\tn\t8.9\t1\treal\n", i);
  const std::string good = good_text();
  text += good.substr(header.size());
  Winners winners(h200());
  winners.load_pack_text(text, "p");
  EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("more than 1024 devices")));
  EXPECT_FALSE(winners.find(request_line(1)));
}

// One request, as many candidates as bars of it, all of one algorithm and none of them in the others' way.
std::string crowded_pack(int count) {
  std::string text = print_pack(make_pack({h200()}, {timed_record(request_line(1), "TILE=16", 1e-5)}), "0.1.0");
  const std::size_t at = text.find("record\t");
  const std::string line = text.substr(at, text.find('\n', at) + 1 - at), before = text.substr(0, at);
  const auto with = [&](const std::string& config, const std::string& outcome, double seconds, int workspace) {
    std::string out = line;
    const auto replace = [&](const std::string& what, const std::string& by) {
      out.replace(out.find(what), what.size(), by);
    };
    replace("TILE=16", config);
    replace("\ttimed\tmeasured\t1e-05\t0\t", fmt::format("\t{}\tmeasured\t{}\t{}\t", outcome, seconds, workspace));
    return out;
  };
  text = before;
  for (int i = 0; i < count; ++i) text += with(fmt::format("TILE={}", i), "timed", 1e-5 + 1e-6 * (count - i), i);
  for (int i = 0; i < count; ++i) text += with(fmt::format("BAR={}", i), "wrong_result", 0, 0);
  return text + "end\n";
}

TEST(HostilePack, ManyCandidatesAndManyBarsOfOneRequestCostNoSquare) {
  const auto seconds_of = [](int count, std::size_t expected) {
    Winners winners(h200());
    winners.load_pack_text(crowded_pack(count), "p");
    const double before = processor_seconds();
    EXPECT_EQ(winners.all(request_line(1)).size(), expected);
    winners.bar(request_line(1), "conv_implicit_gemm", "BAR=1");
    return processor_seconds() - before;
  };
  const double few = seconds_of(5'000, 5'000), many = seconds_of(20'000, 20'000);
  RecordProperty("seconds_of_20000", fmt::format("{}", many));
  EXPECT_LT(many, 16 * few) << "4 times as many, and " << few << " s before";
  EXPECT_LT(many, limit_in_this_build(5)) << "some 0.3 s in a release build";
  const double limited = seconds_of(100'000, max_request_records);
  EXPECT_LT(limited, limit_in_this_build(20));
}

TEST(HostilePack, WhatIsBeyondTheLimitOfARequestIsNamedAndTheRestUsed) {
  const std::string text = crowded_pack(static_cast<int>(max_request_records) + 5);
  Winners winners(h200());
  winners.load_pack_text(text, "p");
  EXPECT_EQ(winners.all(request_line(1)).size(), max_request_records);
  EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("the request has more than 65536 records")));
  EXPECT_EQ(parse_pack(text).pack.records.size(), max_request_records);
}

TEST(HostilePack, AFileBeyondTheLimitIsRefusedUnread) {
  const ScratchFolder folder;
  write_file(folder.file("huge.pack"), good_text());
  std::filesystem::resize_file(folder.file("huge.pack"), max_pack_file + 1);  // sparse
  EXPECT_THAT(error_of(ErrorCode::io_error, [&] { read_pack_file(folder.file("huge.pack")); }), HasSubstr("huge.pack"));
  EXPECT_THAT(problems_of_file(folder.file("huge.pack")), ElementsAre(HasSubstr("too large")));
}

TEST(HostilePack, AFileThatIsNoRegularFileIsRefusedAndNeverWaitedFor) {
  const ScratchFolder folder;
  write_file(folder.file("good.pack"), good_text());
  ASSERT_EQ(mkfifo(folder.file("fifo.pack").c_str(), 0600), 0);
  std::filesystem::create_directory(folder.file("folder.pack"));
  std::filesystem::create_symlink("loop.pack", folder.file("loop.pack"));
  for (const std::string& path :
       {folder.file("fifo.pack"), folder.file("folder.pack"), folder.file("loop.pack"), std::string("/dev/zero"),
        folder.file("missing.pack"), folder.file(std::string(5000, 'n')), folder.file("good.pack").append(1, '\0')}) {
    EXPECT_THAT(problems_of_file(path), SizeIs(1)) << path;
    error_of(ErrorCode::io_error, [&] { read_pack_file(path); });
  }
}

// An application that names its database as a pack, too: to open and close it would give up SQLite's locks.
TEST(HostilePack, ADatabaseIsRefusedAndKeepsTheLocksOfItsProcess) {
  const ScratchFolder folder;
  const std::string path = folder.file("tuning.db");
  Database::open(path);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(testing_support::lock_file(file.get()));
  EXPECT_THAT(problems_of_file(path), ElementsAre(HasSubstr("it is a database")));
  EXPECT_THAT(error_of(ErrorCode::io_error, [&] { read_pack_file(path); }), HasSubstr("it is a database"));
  EXPECT_FALSE(testing_support::free_for_others(path));
}

TEST(HostilePack, DeepEscapesAndEndlessSamplesAreRefusedWithTheLine) {
  const auto reason = [](std::string_view what, const std::string& by) {
    std::string text = good_text();
    text.replace(text.find(what), what.size(), by);
    const ParsedPack parsed = parse_pack(text);
    return parsed.refused.empty() ? std::string("nothing refused") : parsed.refused[0].text();
  };
  std::string backslashes(max_name_bytes * 4, '\\');
  EXPECT_THAT(reason("TILE=16", backslashes), HasSubstr("line 4: config"));
  std::string samples;
  for (std::size_t i = 0; i < max_samples + 1; ++i) samples += "1e-5,";
  EXPECT_THAT(reason("1e-05,", samples), HasSubstr("line 4: has more than 4096 samples"));
  EXPECT_THAT(reason("1e-05\t0\t", "0x1p-3\t0\t"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(reason("1e-05\t0\t", "true\t0\t"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(reason("1e-05\t0\t", "[1]\t0\t"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(reason("1e-05\t0\t", std::string(5000, '9') + "\t0\t"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(reason("\t132\t", "\t132.5\t"), HasSubstr("line 2: multiprocessors"));
  EXPECT_THAT(reason("\t132\t", "\t99999999999\t"), HasSubstr("line 2: multiprocessors"));
  EXPECT_THAT(reason("NVIDIA H200\t9", "NVIDIA\xed\xa0\x80\t9"), HasSubstr("line 2: is not valid UTF-8"));
  EXPECT_THAT(reason("NVIDIA H200\t9", "NVIDIA\xc0\xaf\t9"), HasSubstr("line 2: is not valid UTF-8"));
}

// The text that a person reviews must be what the machine reads.
TEST(HostilePack, CharactersThatHideOrReorderTextAreRefused) {
  for (const char* hidden : {"\xe2\x80\xae", "\xe2\x81\xa6", "\xc2\x9b", "\xe2\x80\xa8", "\x1b[2J"}) {
    std::string text = good_text();
    const std::string what = "NVIDIA H200\t9";
    text.replace(text.find(what), what.size(), std::string("NVIDIA") + hidden + "\t9");
    const ParsedPack parsed = parse_pack(text);
    ASSERT_FALSE(parsed.refused.empty());
    EXPECT_THAT(parsed.refused[0].text(), HasSubstr("line 2: "));
  }
}

}  // namespace
}  // namespace kiln::cache::test::hostile_pack_test
