// Checksums of what the database stores: SQLite has none, and a damaged value that still reads as a value must not pass
// for the stored one. XXH3-64 over all fields, length-prefixed: it finds damage, it does not authenticate.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "front.h"
#include "kiln/cache/database.h"
#include "kiln/cache/record.h"

namespace kiln::cache {

std::int64_t checksum_of(const Record& record);
std::int64_t checksum_of(const DeviceEntry& device);
std::int64_t checksum_of(const DeviceCalibration& calibration);
/// Checksum of a front: its stored bytes, the device that it belongs to, and the names of its entries' algorithms.
std::int64_t checksum_of_front(std::string_view bytes, std::string_view device, std::span<const FrontEntry> entries);

}  // namespace kiln::cache
