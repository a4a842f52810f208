// Records, and devices, that differ in one field alone. Whatever goes through all fields (the order that settles
// merges, checksums, lines of packs) must not pass over any, and records that differ in everything at once do not show
// it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cache_fixtures.h"
#include "checksum.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/record.h"

namespace kiln::cache::test::one_field_test {
namespace {

template <class Of>
struct Change {
  const char* field;
  std::function<void(Of&)> make;
};

// A field that is added to the structure does not compile here: it needs a line in `changes`.
void names_all_fields(const Record& record) {
  const TrialFacts& facts = record;
  [[maybe_unused]] const auto& [request, device, algorithm_digest, source_digest, driver_version, nvrtc_version,
                                seconds, spread, samples, check, error, workspace_bytes, deterministic] = facts;
  // -Wmissing-field-initializers notices another field here.
  [[maybe_unused]] const Record all{facts,
                                    record.algorithm,
                                    record.config,
                                    record.outcome,
                                    record.kind,
                                    record.resources,
                                    record.kiln_version,
                                    record.session,
                                    record.created_ms};
  [[maybe_unused]] const auto& [registers, spill_bytes, shared_bytes] = record.resources;
}

void names_all_fields(const DeviceEntry& device) {
  [[maybe_unused]] const auto& [id, name, cc_major, cc_minor, sms, emulated] = device;
}

const std::vector<Change<Record>> identity = {
    {"request", [](Record& r) { r.request = request_line(2); }},
    {"device", [](Record& r) { r.device = h100().id; }},
    {"algorithm", [](Record& r) { r.algorithm += "x"; }},
    {"algorithm_digest", [](Record& r) { r.algorithm_digest.front() ^= 1; }},
    {"config", [](Record& r) { r.config += "1"; }},
};

const std::vector<Change<Record>> content = {
    {"outcome", [](Record& r) { r.outcome = outcome::rejected_early; }},
    {"kind", [](Record& r) { r.kind = TimeKind::modelled; }},
    {"kind, predicted", [](Record& r) { r.kind = TimeKind::predicted; }},
    {"seconds", [](Record& r) { r.seconds *= 1.5; }},
    {"spread", [](Record& r) { r.spread *= 1.5; }},
    {"samples, the last", [](Record& r) { r.samples.back() *= 1.5; }},
    {"samples, one more", [](Record& r) { r.samples.push_back(1e-5); }},
    {"check", [](Record& r) { r.check += "."; }},
    {"workspace_bytes", [](Record& r) { ++r.workspace_bytes; }},
    {"deterministic", [](Record& r) { r.deterministic = !r.deterministic; }},
    {"registers", [](Record& r) { ++r.resources.registers; }},
    {"spill_bytes", [](Record& r) { ++r.resources.spill_bytes; }},
    {"shared_bytes", [](Record& r) { ++r.resources.shared_bytes; }},
    {"driver_version", [](Record& r) { r.driver_version += "1"; }},
    {"nvrtc_version", [](Record& r) { r.nvrtc_version += "1"; }},
    {"kiln_version", [](Record& r) { r.kiln_version += "1"; }},
    {"source_digest", [](Record& r) { r.source_digest.back() ^= 1; }},
    {"error", [](Record& r) { r.error = "two\nlines"; }},
    {"session", [](Record& r) { r.session += "1"; }},
    {"created_ms", [](Record& r) { ++r.created_ms; }},
};

const std::vector<Change<DeviceEntry>> of_devices = {
    {"name", [](DeviceEntry& d) { d.name += "x"; }},
    {"cc_major", [](DeviceEntry& d) { ++d.cc_major; }},
    {"cc_minor", [](DeviceEntry& d) { ++d.cc_minor; }},
    {"sms", [](DeviceEntry& d) { ++d.sms; }},
    {"emulated", [](DeviceEntry& d) { d.emulated = !d.emulated; }},
};

// As stored: times of the emulated device are modelled, those of real ones are not.
Record on_its_device(Record record) {
  if (record.kind == TimeKind::modelled) record.device = emulated().id;
  return record;
}

template <class Of>
Of changed(Of value, const Change<Of>& change) {
  change.make(value);
  return value;
}

const Record& record() {
  static const Record one = timed_record(request_line(1), "TILE=32", 1e-5);
  names_all_fields(one);
  return one;
}

TEST(OneField, OfTheContentDecidesWhichOfTwoRecordsStays) {
  for (const Change<Record>& change : content) {
    const Record other = changed(record(), change);
    EXPECT_TRUE(same_identity(record(), other)) << change.field;
    EXPECT_NE(supersedes(record(), other), supersedes(other, record())) << change.field;
  }
}

TEST(OneField, OfTheIdentityMakesAnotherRecordWithItsOwnPlace) {
  for (const Change<Record>& change : identity) {
    const Record other = changed(record(), change);
    EXPECT_FALSE(same_identity(record(), other)) << change.field;
    EXPECT_NE(listed_before(record(), other), listed_before(other, record())) << change.field;
  }
  for (const Change<Record>& change : content) {
    EXPECT_FALSE(listed_before(record(), changed(record(), change))) << change.field;
  }
}

TEST(OneField, OfARecordChangesItsChecksum) {
  for (const std::vector<Change<Record>>& changes : {identity, content}) {
    for (const Change<Record>& change : changes) {
      EXPECT_NE(checksum_of(changed(record(), change)), checksum_of(record())) << change.field;
    }
  }
}

TEST(OneField, OfARecordComesBackFromTheDatabase) {
  for (const std::vector<Change<Record>>& changes : {identity, content}) {
    for (const Change<Record>& change : changes) {
      const Record other = on_its_device(changed(record(), change));
      Database db = with_devices(Database::in_memory());
      db.insert(std::span(&other, 1));
      EXPECT_EQ(db.records(other.request, other.device), std::vector{other}) << change.field;
    }
  }
}

// The session stays at home.
TEST(OneField, OfARecordComesBackFromAPack) {
  for (const std::vector<Change<Record>>& changes : {identity, content}) {
    for (const Change<Record>& change : changes) {
      Record other = on_its_device(changed(record(), change));
      const std::string text = print_pack(make_pack({h200(), h100(), emulated()}, {other}), "1");
      other.session.clear();
      const ParsedPack parsed = parse_pack(text);
      ASSERT_EQ(parsed.pack.records.size(), 1u) << change.field;
      EXPECT_EQ(parsed.pack.records.front(), other) << change.field;
    }
  }
}

TEST(OneField, OfADeviceDecidesWhichOfTwoEntriesStaysAndItsChecksum) {
  names_all_fields(h200());
  for (const Change<DeviceEntry>& change : of_devices) {
    const DeviceEntry other = changed(h200(), change);
    EXPECT_NE(supersedes(h200(), other), supersedes(other, h200())) << change.field;
    EXPECT_NE(checksum_of(other), checksum_of(h200())) << change.field;
  }
  DeviceEntry named = h200();
  named.id += "x";
  EXPECT_NE(checksum_of(named), checksum_of(h200()));
}

}  // namespace
}  // namespace kiln::cache::test::one_field_test
