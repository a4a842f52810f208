// Refusals of an import, and that no input can do harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::pack_import_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Line 1 header, 2 device, 3 request, 4 and 5 records, 6 end.
std::string good_text() {
  const Record a = timed_record(request_line(1), "TILE=16", 1e-5);
  Record b = timed_record(request_line(1), "TILE=32", 2e-5);
  return print_pack(make_pack({h200()}, {a, b}), "0.1.0");
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::vector<std::string> refusals(const std::string& text, const PackValidator& validator = {}) {
  std::vector<std::string> result;
  for (const PackRefusal& r : parse_pack(text, validator).refused) result.push_back(r.text());
  return result;
}

TEST(PackImport, RefusesALineWithItsNumberAndReasonAndTakesTheRest) {
  const auto refusal = [](std::string_view what, std::string_view by) {
    const std::string text = replaced(good_text(), what, by);
    const ParsedPack parsed = parse_pack(text);
    EXPECT_EQ(parsed.pack.records.size(), 1u) << by;
    return parsed.refused.empty() ? "nothing refused" : parsed.refused.front().text();
  };
  EXPECT_EQ(refusal("1e-05", "nan"), "line 4: seconds 'nan' is not a finite, non-negative number");
  EXPECT_THAT(refusal("1e-05", "inf"), HasSubstr("line 4: seconds 'inf'"));
  EXPECT_THAT(refusal("1e-05", "-1e-05"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(refusal("1e-05", "1e-05x"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(refusal("1e-05", "1e999"), HasSubstr("line 4: seconds"));
  EXPECT_THAT(refusal("1e-05", ""), HasSubstr("line 4: seconds"));
  EXPECT_THAT(refusal("\t0\tdeterministic", "\t9223372036854775808\tdeterministic"), HasSubstr("line 4: workspace"));
  EXPECT_THAT(refusal("\t0\tdeterministic", "\t-1\tdeterministic"), HasSubstr("line 4: workspace"));
  EXPECT_THAT(refusal("\tdeterministic", "\tperhaps"), HasSubstr("line 4: determinism"));
  EXPECT_THAT(refusal("\tmeasured", "\tguessed"), HasSubstr("line 4: kind"));
  EXPECT_THAT(refusal("\tmeasured", "\tmodelled"), HasSubstr("modelled time on the real device"));
  EXPECT_THAT(refusal("\t64\t", "\t-64\t"), HasSubstr("line 4: registers"));
  EXPECT_THAT(refusal("2026-09-21", "2026-09-31"), HasSubstr("line 4: created"));
  EXPECT_THAT(refusal("TILE=16", "TILE=\\q"), HasSubstr("line 4: config"));
  EXPECT_THAT(refusal("TILE=16", "TILE=\\n"), HasSubstr("control or hidden character"));
  EXPECT_THAT(refusal("TILE=16", "TILE=\xff"), HasSubstr("line 4: is not valid UTF-8"));
  EXPECT_THAT(refusal("TILE=16", std::string_view("TILE=\0", 6)), HasSubstr("line 4: contains a NUL"));
  EXPECT_THAT(refusal("TILE=16", std::string(max_name_bytes + 1, 'x')), HasSubstr("line 4: config"));
  EXPECT_THAT(refusal("TILE=16", std::string(max_pack_line, 'x')), HasSubstr("line 4: has"));
  EXPECT_THAT(refusal("\t1e-05,", "\tx,"), HasSubstr("line 4: sample"));
  EXPECT_THAT(refusal("\nrecord", "\nrecord\textra"), HasSubstr("line 4"));
  EXPECT_THAT(refusal("TILE=16\t", ""), HasSubstr("line 4"));
  EXPECT_THAT(refusal("\nrecord", "\nrec\x01ord"), HasSubstr("line 4: is not a device, request"));
}

TEST(PackImport, TheLinesThatDependOnARefusedOneAreRefusedToo) {
  EXPECT_THAT(refusals(replaced(good_text(), "\t9.0\t", "\t9\t")),
              ElementsAre(HasSubstr("line 2: compute capability"), HasSubstr("line 3: its device line, line 2,"),
                          HasSubstr("line 4: its request line, line 3,"), HasSubstr("line 5")));
  EXPECT_THAT(refusals(replaced(good_text(), "request\t", "request\t\t")),
              ElementsAre(HasSubstr("line 3"), HasSubstr("line 4"), HasSubstr("line 5")));
  EXPECT_THAT(refusals(replaced(good_text(), "request\t", "#")),
              ElementsAre(HasSubstr("line 4: has no request line before it"), HasSubstr("line 5")));
}

TEST(PackImport, AsksTheGeneratorAboutEachRequestOnceAndEachRecord) {
  int requests = 0, records = 0;
  PackValidator validator;
  validator.request = [&](std::string_view line) -> std::optional<std::string> {
    ++requests;
    EXPECT_EQ(line, request_line(1));
    return std::nullopt;
  };
  validator.record = [&](const DeviceEntry& device, const Record& record) -> std::optional<std::string> {
    ++records;
    EXPECT_EQ(device, h200());
    if (record.config == "TILE=16") return "TILE=16 is not in the space";
    return std::nullopt;
  };
  EXPECT_THAT(refusals(good_text(), validator), ElementsAre("line 4: TILE=16 is not in the space"));
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(records, 2);
  validator.request = [](std::string_view) { return std::optional<std::string>("column 3: no such operation"); };
  EXPECT_THAT(refusals(good_text(), validator),
              ElementsAre("line 3: column 3: no such operation", HasSubstr("line 4"), HasSubstr("line 5")));
}

TEST(PackImport, ACutOffPackIsNoticed) {
  const std::string text = good_text();
  EXPECT_THAT(refusals(text.substr(0, text.size() - 4)), ElementsAre(HasSubstr("cut off")));
  for (std::size_t length = text.find('\n') + 1; length < text.size() - 1; ++length) {
    EXPECT_FALSE(parse_pack(text.substr(0, length)).refused.empty()) << length;
  }
  EXPECT_THAT(refusals(text + "record\n"), ElementsAre("line 7: stands after the end line"));
  EXPECT_THAT(refusals(text + "\n# a remark\n"), IsEmpty());
}

TEST(PackImport, CommentsBlankLinesAndWindowsLineBreaksAreAccepted) {
  std::string text = good_text();
  text.insert(text.find("request"), "# measured on the machine in the corner\n\n");
  std::string windows;
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_THAT(refusals(windows), IsEmpty());
  EXPECT_EQ(parse_pack(windows).pack, parse_pack(good_text()).pack);
}

TEST(PackImport, WhatIsNoPackIsAnErrorOfItsOwn) {
  for (const char* text : {"", "\n", "SQLite format 3", "kiln-pack", "kiln-pack\t0\t0.1.0\n", "kiln-pack\tx\t0.1.0\n",
                           "kiln-pack\t1\n", "kiln-pack\t1\t0.1.0\textra\n", "kiln-pack\t1\t\xff\n"}) {
    EXPECT_THAT(error_of(ErrorCode::parse_error, [&] { parse_pack(text); }), HasSubstr("line 1: ")) << text;
  }
  EXPECT_THAT(error_of(ErrorCode::parse_error, [] { parse_pack("kiln-pack\t3\t9.0\nend\n"); }),
              HasSubstr("update Kiln"));
}

TEST(PackImport, NoDamageToATextDoesMoreThanRefuseLines) {
  std::mt19937_64 random(9);
  const std::string good = good_text();
  for (int i = 0; i < 5000; ++i) {
    std::string text = good;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, 1, "\t\n\r\\#-0"[random() % 7]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 50));
      }
    }
    try {
      const ParsedPack parsed = parse_pack(text);
      ASSERT_EQ(parse_pack(print_pack(parsed.pack, "0.1.0")).pack, parsed.pack);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::parse_error);
    }
    Winners winners(h200());
    winners.load_pack_text(text, "damaged");
    if (const auto choice = winners.find(request_line(1))) {
      EXPECT_GT(choice->seconds, 0);
    }
  }
}

}  // namespace
}  // namespace kiln::cache::test::pack_import_test
