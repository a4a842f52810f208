#include "explanation_json.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace kiln::capi {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ExplainedCandidate& candidate) {
  return {{"algorithm", candidate.algorithm},
          {"config", candidate.config},
          {"seconds", candidate.seconds},
          {"source", candidate.source}};
}

Json json_of(const std::vector<ExplainedCandidate>& candidates) {
  Json list = Json::array();
  for (const ExplainedCandidate& candidate : candidates) list.push_back(json_of(candidate));
  return list;
}

}  // namespace

std::string json_of(const Explanation& why) {
  Json refused = Json::array();
  for (const ExplainedRefusal& refusal : why.refused) {
    refused.push_back({{"algorithm", refusal.algorithm}, {"reason", refusal.reason}});
  }
  Json withheld = Json::array();
  for (const ExplainedWithheld& variant : why.withheld) {
    withheld.push_back({{"algorithm", variant.algorithm}, {"config", variant.config}, {"reason", variant.reason}});
  }
  const Json object = {{"request", why.request.key()},
                       {"device", why.device},
                       {"roofline_seconds", why.roofline_seconds},
                       {"roofline_of", why.roofline_of},
                       {"unused_permissions", why.unused_permissions},
                       {"calibrated", why.calibrated},
                       {"calibration", why.calibration},
                       {"chosen", why.chosen ? json_of(*why.chosen) : Json(nullptr)},
                       {"stored", json_of(why.stored)},
                       {"estimated", json_of(why.estimated)},
                       {"withheld", withheld},
                       {"refused", refused}};
  return object.dump(2, ' ', false, Json::error_handler_t::replace);  // a device's name may hold anything
}

}  // namespace kiln::capi
