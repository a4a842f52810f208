#include "kiln/cache/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cache_fixtures.h"
#include "field_text.h"

namespace kiln::cache::test::record_test {
namespace {

using ::testing::HasSubstr;

TEST(Record, RefusesWhatCannotBeStoredAndNamesTheField) {
  const Record good = timed_record(request_line(1), "TILE=32", 1e-5);
  EXPECT_NO_THROW(validate(good));
  const auto refusal = [&](const std::function<void(Record&)>& spoil) {
    Record bad = good;
    spoil(bad);
    return error_of(ErrorCode::invalid_argument, [&] { validate(bad); });
  };
  EXPECT_THAT(refusal([](Record& r) { r.seconds = std::nan(""); }), HasSubstr("seconds"));
  EXPECT_THAT(refusal([](Record& r) { r.seconds = -1e-9; }), HasSubstr("seconds"));
  EXPECT_THAT(refusal([](Record& r) { r.spread = INFINITY; }), HasSubstr("spread"));
  EXPECT_THAT(refusal([](Record& r) { r.samples.push_back(-INFINITY); }), HasSubstr("samples"));
  EXPECT_THAT(refusal([](Record& r) { r.samples.resize(max_samples + 1); }), HasSubstr("samples"));
  EXPECT_THAT(refusal([](Record& r) { r.workspace_bytes = -1; }), HasSubstr("workspace_bytes"));
  EXPECT_THAT(refusal([](Record& r) { r.resources.registers = -2; }), HasSubstr("registers"));
  EXPECT_THAT(refusal([](Record& r) { r.request.clear(); }), HasSubstr("request is empty"));
  EXPECT_THAT(refusal([](Record& r) { r.request += '\n'; }), HasSubstr("request"));
  EXPECT_THAT(refusal([](Record& r) { r.config += '\0'; }), HasSubstr("config"));
  EXPECT_THAT(refusal([](Record& r) { r.algorithm = "\xff"; }), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal([](Record& r) { r.config.assign(max_name_bytes + 1, 'x'); }), HasSubstr("config"));
  EXPECT_THAT(refusal([](Record& r) { r.created_ms = -1; }), HasSubstr("created_ms"));
  EXPECT_THAT(refusal([](Record& r) { r.created_ms = std::numeric_limits<std::int64_t>::max(); }),
              HasSubstr("created_ms"));
}

TEST(Record, FreeTextsAreMadeStorableInsteadOfRefused) {
  Record r = timed_record(request_line(1), "", 1e-5);
  r.error = std::string("log \xc3( with\0NUL", 15);
  r.check = std::string(max_text_bytes, 'x') + "é";
  const Record clean = with_clean_texts(r);
  EXPECT_NO_THROW(validate(clean));
  EXPECT_EQ(clean.error, "log \xEF\xBF\xBD( with\xEF\xBF\xBDNUL");
  EXPECT_LE(clean.check.size(), max_text_bytes);
  EXPECT_THAT(clean.check, HasSubstr("(cut)"));
}

TEST(Record, ATextIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 200) text += "例";
  for (std::size_t limit = 20; limit < 40; ++limit) {
    const std::string cut = clean_text(text, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_TRUE(valid_utf8(cut)) << limit;
  }
  EXPECT_EQ(clean_text("short", 20), "short");
}

TEST(Record, OnlyCorrectCandidatesWithATimeCanWin) {
  Record r = timed_record(request_line(1), "", 1e-5);
  EXPECT_TRUE(usable(r));
  r.outcome = outcome::rejected_early;
  EXPECT_TRUE(usable(r));
  for (const std::string_view name : {outcome::wrong_result, outcome::crashed, outcome::refused, outcome::timed_out,
                                      outcome::out_of_memory, outcome::compile_failed, std::string_view("new")}) {
    r.outcome = name;
    EXPECT_FALSE(usable(r)) << name;
  }
  r.outcome = outcome::timed;
  r.seconds = 0;
  EXPECT_FALSE(usable(r));
}

TEST(Record, SupersedingIsAStrictOrderThatPutsTakenTimesThenNewerOnesFirst) {
  const Record old = timed_record(request_line(1), "", 1e-5);
  Record young = old;
  young.created_ms += 1;
  Record predicted = young;
  predicted.created_ms += 1;
  predicted.kind = TimeKind::predicted;
  EXPECT_TRUE(supersedes(young, old));
  EXPECT_FALSE(supersedes(old, young));
  EXPECT_TRUE(supersedes(old, predicted));
  EXPECT_FALSE(supersedes(old, old));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Record a = random_record(random, {h200(), emulated()});
    const Record b = random_record(random, {h200(), emulated()});
    Record same = b;
    same.request = a.request, same.device = a.device, same.algorithm = a.algorithm;
    same.algorithm_digest = a.algorithm_digest, same.config = a.config;
    EXPECT_NE(supersedes(a, same) || a == same, supersedes(same, a));
  }
}

TEST(Record, WhatBarsAVariantSupersedesATimeOfAnyDate) {
  const Record young = timed_record(request_line(1), "", 1e-5);
  for (const std::string_view name : {outcome::wrong_result, outcome::crashed, outcome::timed_out}) {
    Record bar = young;
    bar.outcome = name;
    bar.created_ms -= 1000;
    EXPECT_TRUE(supersedes(bar, young)) << name;
    EXPECT_FALSE(supersedes(young, bar)) << name;
    Record later = bar;
    later.created_ms += 1;
    EXPECT_TRUE(supersedes(later, bar)) << name;
  }
  Record harmless = young;
  harmless.outcome = outcome::compile_failed;
  harmless.created_ms += 1;
  EXPECT_TRUE(supersedes(harmless, young));
}

TEST(Utf8, IsCheckedByTheStandardsTable) {
  for (const char* good :
       {"", "ascii", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(valid_utf8(good)) << good;
    EXPECT_TRUE(valid_utf8(std::string("12345678") + good + "87654321")) << good;
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(valid_utf8(bad));
    EXPECT_FALSE(valid_utf8(std::string("12345678") + bad));
  }
}

TEST(Escape, ComesBackAsItWasAndHasOneSpelling) {
  const std::string awkward = "tab\t line\n return\r back\\slash \x01\x1f\x7f é";
  const std::string escaped = escape(awkward);
  EXPECT_FALSE(has_control(escaped));
  EXPECT_EQ(unescape(escaped), awkward);
  for (const char* broken : {"\\", "\\q", "\\x", "\\x4", "\\x41", "\\x00", "\\x1F", "\\xzz"}) {
    EXPECT_EQ(unescape(broken), std::nullopt) << broken;
  }
}

TEST(Utc, PrintsAndParsesTheSameInstant) {
  EXPECT_EQ(format_utc(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_utc(951'782'400'001), "2000-02-29T00:00:00.001Z");
  for (const std::int64_t ms : {std::int64_t{0}, std::int64_t{1'790'000'000'123}, std::int64_t{253'402'300'799'999}}) {
    EXPECT_EQ(parse_utc(format_utc(ms)), ms);
  }
  for (const char* bad :
       {"", "2026-02-30T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z", "2026-01-01T00:00:00Z",
        "2026-01-01 00:00:00.000Z", "2026-13-01T00:00:00.000Z", "202x-01-01T00:00:00.000Z"}) {
    EXPECT_EQ(parse_utc(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace kiln::cache::test::record_test
