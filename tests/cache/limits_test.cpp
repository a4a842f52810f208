// Values that just fit, and those one beyond: texts, numbers, times of day, fields of a pack's lines, sizes of a
// database file; and what each fault of SQLite means to who runs the program.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cache_fixtures.h"
#include "field_text.h"
#include "kiln/cache/pack.h"
#include "open_file.h"
#include "sqlite.h"

namespace kiln::cache::test::limits_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const Record good = timed_record(request_line(1), "TILE=32", 1e-5);

/// The fault of a record or a device; empty if there is none.
template <typename Entry>
std::string fault_of(const Entry& entry) {
  try {
    validate(entry);
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

TEST(Limits, OfTextsOfARecord) {
  struct Field {
    std::string name;
    std::string Record::*text;
    std::size_t most;
    bool may_be_empty;
  };
  const std::vector<Field> fields = {
      {"request", &Record::request, max_request_bytes, false},
      {"device", &Record::device, max_name_bytes, false},
      {"algorithm", &Record::algorithm, max_name_bytes, false},
      {"algorithm_digest", &Record::algorithm_digest, max_name_bytes, false},
      {"config", &Record::config, max_name_bytes, true},
      {"outcome", &Record::outcome, max_name_bytes, false},
      {"driver_version", &Record::driver_version, max_name_bytes, true},
      {"nvrtc_version", &Record::nvrtc_version, max_name_bytes, true},
      {"kiln_version", &Record::kiln_version, max_name_bytes, true},
      {"source_digest", &Record::source_digest, max_name_bytes, true},
      {"session", &Record::session, max_name_bytes, true},
      {"check", &Record::check, max_text_bytes, true},
      {"error", &Record::error, max_text_bytes, true},
  };
  for (const auto& [name, text, most, may_be_empty] : fields) {
    const auto with = [&, field = text](const std::string& value) {
      Record r = good;
      r.*field = value;
      return fault_of(r);
    };
    EXPECT_EQ(with(std::string(most, 'x')), "") << name;
    EXPECT_EQ(with(std::string(most + 1, 'x')),
              fmt::format("cache record: {} has {} bytes, more than {}", name, most + 1, most));
    EXPECT_EQ(with(""), may_be_empty ? "" : fmt::format("cache record: {} is empty", name));
    EXPECT_THAT(with("\xff"), HasSubstr(name)) << "no UTF-8";
    EXPECT_THAT(with(std::string(1, '\0')), HasSubstr(name)) << "a NUL";
  }
}

TEST(Limits, OfNumbersOfARecord) {
  struct Case {
    std::function<void(Record&, std::int64_t)> set;
    std::int64_t least, most;
  };
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  const std::map<std::string, Case> cases = {
      {"workspace_bytes", {[](Record& r, auto n) { r.workspace_bytes = n; }, 0, any}},
      {"registers", {[](Record& r, auto n) { r.resources.registers = n; }, -1, any}},
      {"spill_bytes", {[](Record& r, auto n) { r.resources.spill_bytes = n; }, -1, any}},
      {"shared_bytes", {[](Record& r, auto n) { r.resources.shared_bytes = n; }, -1, any}},
      {"created_ms", {[](Record& r, auto n) { r.created_ms = n; }, 0, 253'402'300'799'999}},
      {"seconds", {[](Record& r, auto n) { r.seconds = static_cast<double>(n); }, 0, any}},
      {"spread", {[](Record& r, auto n) { r.spread = static_cast<double>(n); }, 0, any}},
      {"samples", {[](Record& r, auto n) { r.samples = {static_cast<double>(n)}; }, 0, any}},
  };
  for (const auto& [name, one] : cases) {
    const auto with = [&, set = one.set](std::int64_t number) {
      Record r = good;
      set(r, number);
      return fault_of(r);
    };
    EXPECT_EQ(with(one.least), "") << name;
    EXPECT_EQ(with(one.most), "") << name;
    EXPECT_THAT(with(one.least - 1), StartsWith("cache record: " + name)) << one.least - 1;
    if (one.most != any) {
      EXPECT_THAT(with(one.most + 1), StartsWith("cache record: " + name));
    }
  }
  Record r = good;
  r.samples.assign(max_samples, 1e-5);
  EXPECT_EQ(fault_of(r), "");
}

TEST(Limits, OfADevice) {
  const auto with = [](const std::function<void(DeviceEntry&)>& change) {
    DeviceEntry device = h200();
    change(device);
    return fault_of(device);
  };
  EXPECT_EQ(with([](auto& d) { d.id.assign(max_name_bytes, 'x'), d.name.assign(max_name_bytes, 'x'); }), "");
  EXPECT_EQ(with([](auto& d) { d.name.clear(), d.cc_major = d.cc_minor = d.sms = 0; }), "");
  EXPECT_EQ(with([](auto& d) { d.id.clear(); }), "cache device: id is empty");
  EXPECT_THAT(with([](auto& d) { d.name.assign(max_name_bytes + 1, 'x'); }), StartsWith("cache device: name has"));
  EXPECT_THAT(with([](auto& d) { d.id.assign(max_name_bytes + 1, 'x'); }), StartsWith("cache device: id has"));
  EXPECT_THAT(with([](auto& d) { d.cc_major = -1; }), HasSubstr("cc_major = -1 is below 0"));
  EXPECT_THAT(with([](auto& d) { d.cc_minor = -1; }), HasSubstr("cc_minor = -1 is below 0"));
  EXPECT_THAT(with([](auto& d) { d.sms = -1; }), HasSubstr("sms = -1 is below 0"));
}

TEST(Limits, OfTextsThatAreCut) {
  const std::string fits(200, 'x');
  EXPECT_EQ(clean_text(fits, 200), fits);
  EXPECT_EQ(clean_text(fits + "x", 200), std::string(190, 'x') + " ... (cut)") << "as much as has room with the mark";
  EXPECT_EQ(cache::quoted(std::string(120, 'x')), "'" + std::string(120, 'x') + "'");
  EXPECT_THAT(cache::quoted(std::string(121, 'x')), HasSubstr(" ... (cut)'"));
  Record r = good;
  r.check = r.error = std::string(max_text_bytes, 'x');
  EXPECT_EQ(with_clean_texts(r), r);
  r.error = "hidden \xe2\x80\xae";
  EXPECT_EQ(with_clean_texts(r).error, "hidden \xEF\xBF\xBD");
}

// Every control character has one spelling, and nothing else is escaped.
TEST(Limits, OfWhatIsAControlCharacter) {
  for (int c = 1; c < 128; ++c) {
    const std::string text(1, static_cast<char>(c));
    const bool is_control = c < 0x20 || c == 0x7f;
    EXPECT_EQ(has_control(text), is_control) << c;
    EXPECT_EQ(escape(text).size() > 1, is_control || c == '\\') << c;
    EXPECT_EQ(unescape(escape(text)), text) << c;
    const std::string in_hex = fmt::format("\\x{:02x}", c);
    EXPECT_EQ(unescape(in_hex), is_control ? std::optional(text) : std::nullopt) << in_hex;
  }
}

TEST(Limits, OfTimesOfDay) {
  const std::string shape = "2024-12-31T23:59:59.999Z";
  EXPECT_EQ(parse_utc(shape), 1'735'689'599'999);
  EXPECT_EQ(parse_utc("2024-02-29T00:00:00.000Z"), 1'709'164'800'000);
  for (const char* bad :
       {"2024-13-31T23:59:59.999Z", "2024-00-31T23:59:59.999Z", "2024-12-32T23:59:59.999Z", "2024-12-00T23:59:59.999Z",
        "2024-12-31T24:59:59.999Z", "2024-12-31T23:60:59.999Z", "2024-12-31T23:59:60.999Z", "2023-02-29T00:00:00.000Z"})
    EXPECT_EQ(parse_utc(bad), std::nullopt) << bad;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    for (const char c : {'/', ':', 'x'}) {  // the first two stand beside the digits
      std::string text = shape;
      text[i] = c;
      EXPECT_EQ(parse_utc(text).has_value(), text == shape) << text;
    }
  }
}

// The fields of a record's line, in order, with a value that each refuses and what is said of it.
struct PackField {
  std::string name, wrong, reason;
};

const std::vector<PackField>& fields() {
  static const std::vector<PackField> all = {
      {"algorithm", "", "algorithm is empty"},
      {"algorithm digest", "", "algorithm digest is empty"},
      {"config", std::string(max_name_bytes + 1, 'x'), "config is too long"},
      {"outcome", "", "cache record: outcome is empty"},
      {"kind", "guessed", "kind 'guessed' is not measured, modelled or predicted"},
      {"seconds", "-1e-05", "seconds '-1e-05' is not a finite, non-negative number"},
      {"workspace", "-1", "workspace '-1' is not a number of bytes"},
      {"determinism", "maybe", "determinism 'maybe' is not deterministic or varies"},
      {"spread", "x", "spread 'x' is not a number"},
      {"registers", "-1", "registers '-1' is not a whole number or '-'"},
      {"spill bytes", "1.5", "spill bytes '1.5' is not a whole number or '-'"},
      {"shared bytes", "x", "shared bytes 'x' is not a whole number or '-'"},
      {"source digest", "\\q", "source digest has a broken escape"},
      {"driver version", "\\q", "driver version has a broken escape"},
      {"NVRTC version", "\\q", "NVRTC version has a broken escape"},
      {"Kiln version", "\\q", "Kiln version has a broken escape"},
      {"created", "yesterday", "created 'yesterday' is not a UTC time"},
      {"check", "\\q", "check has a broken escape"},
      {"error", "\\q", "error has a broken escape"},
      {"samples", "1e-05,", "samples end with a comma"},
  };
  return all;
}

/// A pack of one record whose line has those fields.
std::string pack_with(const std::vector<std::string>& values) {
  std::string text = pack_text_of({good});
  const std::size_t begin = text.find("record\t"), end = text.find('\n', begin);
  return text.replace(begin, end - begin, fmt::format("record\t{}", fmt::join(values, "\t")));
}

std::vector<std::string> good_values() {
  const std::string text = pack_text_of({good});
  const std::size_t begin = text.find("record\t") + 7;
  std::vector<std::string> values(1);
  for (const char c : text.substr(begin, text.find('\n', begin) - begin)) {
    if (c == '\t') {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

std::string refusal_of(const std::vector<std::string>& values) {
  const ParsedPack parsed = parse_pack(pack_with(values));
  return parsed.refused.empty() ? "" : parsed.refused[0].reason;
}

TEST(Limits, OfTheFieldsOfARecordsLine) {
  const std::vector<std::string> values = good_values();
  ASSERT_EQ(values.size(), fields().size());
  EXPECT_EQ(refusal_of(values), "");
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::string> wrong = values, fewer(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i));
    wrong[i] = fields()[i].wrong;
    EXPECT_THAT(refusal_of(wrong), HasSubstr(fields()[i].reason));
    if (i > 0) {
      EXPECT_EQ(refusal_of(fewer), fmt::format("the field {} is missing", fields()[i].name));
    }
  }
  std::vector<std::string> more = values;
  more.push_back("more");
  EXPECT_EQ(refusal_of(more), "has 'more' after its last field");
}

// Unusual fields that a line may have, and that come back.
TEST(Limits, OfWhatARecordsLineMaySay) {
  const auto with = [](std::size_t field, const std::string& value) {
    std::vector<std::string> values = good_values();
    values[field] = value;
    const ParsedPack parsed = parse_pack(pack_with(values));
    EXPECT_THAT(parsed.refused, IsEmpty()) << fields()[field].name;
    return parsed.pack.records.empty() ? Record{} : parsed.pack.records[0];
  };
  EXPECT_EQ(with(2, std::string(max_name_bytes, 'x')).config.size(), max_name_bytes);
  EXPECT_EQ(with(2, "").config, "");
  EXPECT_EQ(with(5, fmt::format("{}", least_pack_seconds)).seconds, least_pack_seconds);
  EXPECT_EQ(with(6, "0").workspace_bytes, 0);
  EXPECT_FALSE(with(7, "varies").deterministic);
  EXPECT_EQ(with(9, "-").resources.registers, -1);
  EXPECT_EQ(with(9, "0").resources.registers, 0);
  EXPECT_EQ(with(10, "7").resources.spill_bytes, 7);
  EXPECT_EQ(with(11, "-").resources.shared_bytes, -1);
  EXPECT_EQ(with(16, "1970-01-01T00:00:00.000Z").created_ms, 0);
  EXPECT_EQ(with(17, "two\\nlines").check, "two\nlines");
  EXPECT_THAT(with(19, "").samples, IsEmpty());
  EXPECT_THAT(with(19, "1,2").samples, ElementsAre(1, 2));
  std::vector<std::string> fast = good_values();
  fast[5] = fmt::format("{}", least_pack_seconds * 0.99);
  EXPECT_THAT(refusal_of(fast), HasSubstr("is impossible: nothing is launched and done within"));
  std::string samples = "1";
  for (std::size_t i = 1; i < max_samples; ++i) samples += ",1";
  EXPECT_EQ(with(19, samples).samples.size(), max_samples);
  std::vector<std::string> many = good_values();
  many[19] = samples + ",1";
  EXPECT_EQ(refusal_of(many), "has more than 4096 samples");
}

TEST(Limits, OfTheFormatsVersion) {
  const auto of = [](const std::string& version) {
    std::string text = pack_text_of({good});
    text.replace(0, text.find('\n'), "kiln-pack\t" + version + "\t0.1.0");
    try {
      parse_pack(text);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(of(std::to_string(pack_format_version)), "");
  EXPECT_EQ(of("1"), "");
  EXPECT_EQ(of("0"), "line 1: format version '0' is not a number");
  EXPECT_EQ(of("one"), "line 1: format version 'one' is not a number");
  EXPECT_EQ(of(std::to_string(pack_format_version + 1)),
            fmt::format("line 1: is a pack of format {}; this library reads up to {}: update Kiln",
                        pack_format_version + 1, pack_format_version));
}

// ---- database files ----

TEST(Limits, OfWhatAFaultOfSqliteLeavesToBeRead) {
  struct Case {
    int code;
    Trouble trouble;
    bool readable;
  };
  const std::vector<Case> cases = {
      {SQLITE_BUSY, Trouble::locked, true},
      {SQLITE_LOCKED, Trouble::locked, true},
      {SQLITE_FULL, Trouble::full, true},
      {SQLITE_READONLY, Trouble::read_only, true},
      {SQLITE_READONLY_DIRECTORY, Trouble::read_only, true},
      {SQLITE_PERM, Trouble::read_only, true},
      {SQLITE_CANTOPEN, Trouble::unreachable, true},
      {SQLITE_IOERR, Trouble::unreachable, true},
      {SQLITE_IOERR_WRITE, Trouble::unreachable, true},
      {SQLITE_IOERR_READ, Trouble::unreachable, false},
      {SQLITE_IOERR_SHORT_READ, Trouble::unreachable, false},
      {SQLITE_IOERR_CORRUPTFS, Trouble::unreachable, false},
      {SQLITE_CORRUPT, Trouble::corrupt, false},
      {SQLITE_CORRUPT_INDEX, Trouble::corrupt, false},
      {SQLITE_INTERRUPT, Trouble::corrupt, false},
      {SQLITE_NOTADB, Trouble::not_a_database, false},
      {SQLITE_NOMEM, Trouble::unreachable, false},
  };
  for (const auto& [code, trouble, readable] : cases) {
    const Problem problem = problem_of(SqliteFault(code, "the fault"), "a.db");
    EXPECT_EQ(problem.trouble, trouble) << code;
    EXPECT_EQ(problem.readable, readable) << code;
    EXPECT_THAT(problem.what, testing::AllOf(StartsWith("a.db "), HasSubstr(": the fault")));
    EXPECT_NE(problem.hint, "");
  }
}

class DatabaseFile : public testing::Test {
 protected:
  /// A database without a log, of pages of that size.
  std::string made(int page) const {
    const std::string path = folder_.file("whole.db");
    std::filesystem::remove(path);
    { with_devices(Database::open(path, {.journal = Journal::rollback})).insert(std::span(&good, 1)); }
    Connection raw = Connection::open(path, SQLITE_OPEN_READWRITE, std::chrono::milliseconds(100));
    raw.execute(fmt::format("PRAGMA page_size = {}; VACUUM", page));
    return path;
  }

  /// The problem of a file of these bytes; empty if it is in use.
  std::string problem_with(const std::string& bytes, const std::string& beside = "") const {
    const std::string path = folder_.file("file.db");
    for (const char* suffix : {"", "-wal", "-journal", "-shm"}) std::filesystem::remove(path + suffix);
    write_file(path, bytes);
    if (!beside.empty()) write_file(path + beside, "x");
    const OpenedFile opened = open_file(path, {.mode = OpenMode::read_only, .journal = Journal::rollback});
    return opened.problem ? opened.problem->what.substr(path.size() + 1) : "";
  }

  const ScratchFolder folder_{ScratchFolder::Where::memory};
};

TEST_F(DatabaseFile, ThatIsShorterThanItsHeaderSaysIsDamaged) {
  const std::string cut = "is damaged: it is shorter than its header says";
  for (const int page : {512, 4096, 65536}) {
    const std::string whole = read_file(made(page));
    ASSERT_GT(whole.size(), static_cast<std::size_t>(2 * page));
    EXPECT_EQ(problem_with(whole), "") << page;
    EXPECT_EQ(problem_with(whole + std::string(static_cast<std::size_t>(page), '\0')), "") << "a page that is not used";
    for (const std::size_t length : {whole.size() - 1, whole.size() - static_cast<std::size_t>(page), std::size_t{512}})
      EXPECT_EQ(problem_with(whole.substr(0, length)), cut) << length << " bytes in pages of " << page;
    EXPECT_EQ(problem_with(whole.substr(0, 511)), "is damaged: it is cut off within its first page") << page;
  }
  std::string whole = read_file(made(4096));
  whole[27] =
      static_cast<char>(whole[27] + 1);  // its counter of changes: by another SQLite, without the count of pages
  EXPECT_NE(problem_with(whole.substr(0, whole.size() - 1)), cut);
}

// Another process may be about to write the rest.
TEST_F(DatabaseFile, ThatIsShortWithAnUnfinishedWriteBesideItIsNotSaidToBeCut) {
  const std::string whole = read_file(made(4096));
  for (const char* beside : {"-wal", "-journal"})
    EXPECT_THAT(problem_with(whole.substr(0, whole.size() - 4096), beside), Not(HasSubstr("shorter"))) << beside;
}

TEST_F(DatabaseFile, OfOneByteIsNone) {
  EXPECT_THAT(problem_with("x"), StartsWith("is not a database"));
  EXPECT_THAT(problem_with("SQLite format 3"), StartsWith("is not a database")) << "without the zero behind it";
  EXPECT_THAT(problem_with(""), HasSubstr("is empty or of an older Kiln")) << "nothing is to be read there";
}

}  // namespace
}  // namespace kiln::cache::test::limits_test
