// kiln explain --why-miss: the stored request that is nearest to one that nothing is stored for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.h"
#include "kiln/cache/database.h"
#include "output.h"

namespace kiln::cli {

/// A request that a database or a pack has records of.
struct StoredRequest {
  std::string request;  ///< Its canonical line.
  std::string device;   ///< A DeviceId line.
  std::string where;    ///< "the database", "pack models.pack".
};

/// A part of a request or of a DeviceId that differs.
struct Difference {
  std::string part;          ///< "x extents", "pad", "device sms".
  std::string here, stored;  ///< "-" where one has no such part.
  bool operator==(const Difference&) const = default;
};

/// Differences between two canonical lines, in the order of the parts of `here`. An operand has the parts dtype,
/// extents, layout and alignment.
std::vector<Difference> request_differences(std::string_view here, std::string_view stored);
/// Differences between two DeviceId lines.
std::vector<Difference> device_differences(std::string_view here, std::string_view stored);

/// Answer of the stored requests about one that is missed.
struct Miss {
  std::string why;                       ///< In a sentence.
  std::optional<StoredRequest> nearest;  ///< Nothing where no request is stored.
  std::vector<Difference> differences;   ///< Parts of the request, then of the device.
};

/// Nearest is what differs in the fewest parts of the request, then in extents by the smallest factors, then in the
/// fewest parts of the device. Another operation is never near.
Miss why_missed(const std::string& request, const std::string& device, const std::vector<StoredRequest>& stored);

/// All requests of `database` and of the packs at `paths`. A pack that cannot be read is passed over: the Context says
/// what is wrong with it.
std::vector<StoredRequest> stored_requests(const std::optional<cache::Database>& database,
                                           const std::vector<std::string>& paths);

std::string text_of(const Miss& miss, const Output& output);
Json json_of(const Miss& miss);

}  // namespace kiln::cli
