#include "checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <string>

namespace kiln::cache {
namespace {

class Fields {
 public:
  Fields& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  Fields& add(std::int64_t value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    bytes_.append(bytes, sizeof(value));
    return *this;
  }
  // SQLite stores -0 as 0.
  Fields& add(double value) { return add(std::bit_cast<std::int64_t>(value == 0 ? 0.0 : value)); }

  std::int64_t hash() const { return static_cast<std::int64_t>(XXH3_64bits(bytes_.data(), bytes_.size())); }

 private:
  std::string bytes_;
};

std::string_view sample_bytes(const std::vector<double>& samples) {
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(double)};
}

}  // namespace

std::int64_t checksum_of(const Record& r) {
  Fields fields;
  fields.add(r.request).add(r.device).add(r.algorithm).add(r.algorithm_digest).add(r.config);
  fields.add(r.outcome).add(to_string(r.kind)).add(r.seconds).add(r.spread).add(sample_bytes(r.samples)).add(r.check);
  fields.add(r.workspace_bytes).add(std::int64_t{r.deterministic});
  fields.add(r.resources.registers).add(r.resources.spill_bytes).add(r.resources.shared_bytes);
  fields.add(r.driver_version).add(r.nvrtc_version).add(r.kiln_version).add(r.source_digest);
  fields.add(r.error).add(r.session).add(r.created_ms);
  return fields.hash();
}

std::int64_t checksum_of(const DeviceEntry& d) {
  Fields fields;
  fields.add(d.id).add(d.name).add(std::int64_t{d.cc_major}).add(std::int64_t{d.cc_minor});
  fields.add(std::int64_t{d.sms}).add(std::int64_t{d.emulated});
  return fields.hash();
}

std::int64_t checksum_of(const DeviceCalibration& c) {
  return Fields().add(c.device).add(c.figures).add(c.created_ms).hash();
}

std::int64_t checksum_of_front(std::string_view bytes, std::string_view device, std::span<const FrontEntry> entries) {
  Fields fields;
  fields.add(bytes).add(device);
  for (const FrontEntry& entry : entries) fields.add(entry.algorithm->name).add(entry.algorithm->digest);
  return fields.hash();
}

}  // namespace kiln::cache
