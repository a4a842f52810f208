#include <nlohmann/json.hpp>
#include <vector>

#include "kiln/context.h"

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ExplainedCandidate& candidate) {
  return {{"algorithm", candidate.algorithm},
          {"config", candidate.config},
          {"seconds", candidate.seconds},
          {"source", candidate.source}};
}

Json json_of(const ExplainedWithheld& variant) {
  return {{"algorithm", variant.algorithm}, {"config", variant.config}, {"reason", variant.reason}};
}

Json json_of(const ExplainedRefusal& refusal) {
  return {{"algorithm", refusal.algorithm}, {"reason", refusal.reason}};
}

Json json_of(const ExplainedOrder& sums) {
  return {{"order", sums.order}, {"slowdown", sums.slowdown}, {"basis", sums.basis}};
}

template <class Explained>
Json list_of(const std::vector<Explained>& all) {
  Json list = Json::array();
  for (const Explained& one : all) list.push_back(json_of(one));
  return list;
}

}  // namespace

std::string to_json(const Explanation& why) {
  const Json object = {{"request", why.request.key()},
                       {"device", why.device},
                       {"roofline_seconds", why.roofline_seconds},
                       {"roofline_of", why.roofline_of},
                       {"unused_permissions", why.unused_permissions},
                       {"calibrated", why.calibrated},
                       {"calibration", why.calibration},
                       {"chosen", why.chosen ? json_of(*why.chosen) : Json(nullptr)},
                       {"stored", list_of(why.stored)},
                       {"estimated", list_of(why.estimated)},
                       {"withheld", list_of(why.withheld)},
                       {"not_believed", list_of(why.not_believed)},
                       {"refused", list_of(why.refused)},
                       {"order_of_sums", why.order_of_sums ? json_of(*why.order_of_sums) : Json(nullptr)},
                       {"no_compiler", why.no_compiler}};
  return object.dump(2, ' ', false, Json::error_handler_t::replace);  // a device's name may hold anything
}

}  // namespace kiln
