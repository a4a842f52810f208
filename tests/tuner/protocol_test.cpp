// Messages between a session and its workers: every member arrives, answers that cannot be are refused, and what
// goes wrong in a worker is told as what it is.
#include "protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/device/driver.h"
#include "measurer.h"

namespace kiln::tuner::protocol_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Each member has another value, and none its default.
TEST(Protocol, EveryMemberArrives) {
  int next = 100;
  json device = to_json(device::DeviceInfo{}), resources = to_json(device::KernelResources{});
  EXPECT_EQ(device.size(), 22U);
  EXPECT_EQ(resources.size(), 9U);
  for (json* values : {&device, &resources}) {
    for (auto& [name, value] : values->items()) {
      if (value.is_boolean()) {
        value = !value.get<bool>();
      } else if (value.is_string()) {
        value = "the " + name;
      } else {
        value = ++next;
      }
    }
  }
  EXPECT_EQ(to_json(device_info_from(device)), device);
  EXPECT_EQ(to_json(resources_from(resources)), resources);
  EXPECT_EQ(device_info_from(device).blocks_per_sm, device.at("blocks_per_sm").get<int>());
  EXPECT_EQ(resources_from(resources).spill_loads, resources.at("spill_loads").get<int>());
  for (json* values : {&device, &resources}) {
    const json whole = *values;
    for (const auto& [name, value] : whole.items()) {
      json fewer = whole;
      fewer.erase(name);
      EXPECT_THROW(values == &device ? (void)device_info_from(fewer) : (void)resources_from(fewer), json::exception)
          << name;
    }
  }
  checking::CheckOptions check;
  check.fills = {reference::Values::specials, reference::Values::wide};
  check.seed = 7, check.samples = 8, check.full_flops = 9, check.full_elements = 10;
  const checking::CheckOptions checked = check_options_from(to_json(check));
  EXPECT_EQ(checked.fills, check.fills);
  EXPECT_EQ(to_json(checked), to_json(check));
  EXPECT_EQ(checked.full_elements, 10);
  const store::StoreOptions store =
      store_options_from(to_json(store::StoreOptions{.folder = "f", .limit_bytes = 5, .shared = true}));
  EXPECT_EQ(store.folder, "f");
  EXPECT_EQ(store.limit_bytes, 5U);
  EXPECT_TRUE(store.shared);
  const Failure failure = failure_from(to_json(Failure{Outcome::timed_out, "why"}));
  EXPECT_EQ(failure.outcome, Outcome::timed_out);
  EXPECT_EQ(failure.error, "why");
  EXPECT_EQ(failure_from({{"outcome", "invented"}, {"error", ""}}).outcome, Outcome::crashed);
}

TEST(Protocol, AnswersAreTakenUpToTheirLimits) {
  const json device = to_json(device::DeviceInfo{}), resources = to_json(device::KernelResources{});
  const json failure = to_json(Failure{Outcome::crashed, ""});
  const int last = static_cast<int>(last_error_code);
  struct Case {
    json command, answer;
    std::string refusal;  ///< A part of it; empty where the answer is taken.
  };
  const std::vector<Case> cases = {
      {{{"do", "discard"}, {"serial", 3}}, {{"serial", 3}}, ""},
      {{{"do", "discard"}, {"serial", 3}}, {{"serial", 4}}, "the answer to another command"},
      {{{"do", "discard"}, {"serial", 3}}, json::object(), "the answer to another command"},
      {{{"do", "nvrtc"}}, {{"nvrtc_major", 1}, {"nvrtc_minor", 0}}, ""},
      {{{"do", "nvrtc"}}, {{"nvrtc_major", 0}, {"nvrtc_minor", 1}}, "an NVRTC without a version"},
      {{{"do", "nvrtc"}}, {{"nvrtc_major", 1}}, "nvrtc_minor"},
      {{{"do", "compile"}}, {{"seconds", 0}, {"resources", resources}, {"payload", 1}}, ""},
      {{{"do", "compile"}}, {{"seconds", 0}, {"resources", resources}, {"payload", 0}}, "a compile without a result"},
      {{{"do", "compile"}}, {{"seconds", 0}, {"resources", resources}}, "a compile without a result"},
      {{{"do", "compile"}}, {{"resources", resources}, {"payload", 1}}, "seconds"},
      {{{"do", "compile"}}, {{"seconds", 0}, {"payload", 1}}, "resources"},
      {{{"do", "begin"}}, {{"verdict", ""}}, ""},
      {{{"do", "begin"}}, json::object(), "verdict"},
      {{{"do", "check"}}, json::object(), "verdict"},
      {{{"do", "compile"}}, {{"seconds", -1e-9}, {"resources", resources}, {"payload", 1}}, "a time that is none"},
      {{{"do", "sample"}, {"count", 1}},
       {{"samples", {std::numeric_limits<double>::infinity()}}},
       "a time that is none"},
      {{{"do", "check"}}, {{"failure", failure}}, ""},
      {{{"do", "check"}}, {{"failure", {{"outcome", "rejected_early"}, {"error", ""}}}}, "a failure that is none"},
      {{{"do", "sample"}, {"count", 2}}, {{"samples", {0, 1}}}, ""},
      {{{"do", "sample"}, {"count", 2}}, {{"samples", {0}}}, "another number of samples"},
      {{{"do", "sample"}, {"count", 1}}, {{"samples", {{"a", 1}}}}, "number"},
      {{{"do", "sample"}, {"count", 1}}, {{"samples", json::object({{"a", 1}})}}, "another number of samples"},
      {{{"do", "open"}},
       {{"device", device}, {"times_without_running", false}, {"driver_version", ""}, {"driver", ""}},
       ""},
      {{{"do", "open"}}, {{"times_without_running", false}, {"driver_version", ""}, {"driver", ""}}, "device"},
      {{{"do", "open"}}, {{"device", device}, {"driver_version", ""}, {"driver", ""}}, "times_without_running"},
      {{{"do", "open"}}, {{"device", device}, {"times_without_running", false}, {"driver", ""}}, "driver_version"},
      {{{"do", "open"}}, {{"device", device}, {"times_without_running", false}, {"driver_version", ""}}, "driver"},
      {{{"do", "load"}}, {{"error", "e"}, {"code", last}}, ""},
      {{{"do", "load"}}, {{"error", "e"}}, ""},
      {{{"do", "load"}}, {{"error", "e"}, {"code", last + 1}}, "an error of no known kind"},
      {{{"do", "load"}}, {{"error", "e"}, {"code", -1}}, "an error of no known kind"},
      {{{"do", "load"}}, {{"error", "e"}, {"code", 0}}, ""},
  };
  for (const auto& [command, answer, refusal] : cases) {
    const std::optional<std::string> found = refuse_answer(command, answer);
    EXPECT_EQ(found.has_value(), !refusal.empty()) << command << answer;
    EXPECT_THAT(found.value_or(""), HasSubstr(refusal)) << answer;
  }
}

TEST(Diagnosis, TellsWhatAVariantIsToBlameForAndWhetherTheDeviceIsLost) {
  struct Case {
    std::function<void()> fault;
    Outcome outcome;
    bool device_lost;
  };
  using device::DriverError;
  const std::vector<Case> cases = {
      {[] { throw DriverError(cuda_abi::CUDA_ERROR_OUT_OF_MEMORY, "m"); }, Outcome::out_of_memory, false},
      {[] { throw DriverError(cuda_abi::CUDA_ERROR_INVALID_VALUE, "m"); }, Outcome::compile_failed, false},
      {[] { throw DriverError(cuda_abi::CUDA_ERROR_LAUNCH_TIMEOUT, "m"); }, Outcome::timed_out, true},
      {[] { throw DriverError(cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS, "m"); }, Outcome::crashed, true},
      {[] { throw Error(ErrorCode::out_of_memory, "m"); }, Outcome::out_of_memory, false},
      {[] { throw Error(ErrorCode::unsupported, "m"); }, Outcome::refused, false},
      {[] { throw Error(ErrorCode::compile_failed, "m"); }, Outcome::compile_failed, false},
      {[] { throw Error(ErrorCode::internal, "m"); }, Outcome::crashed, true},
      {[] { throw std::bad_alloc(); }, Outcome::out_of_memory, false},
      {[] { throw std::runtime_error("m"); }, Outcome::crashed, true},
  };
  for (const Case& each : cases) {
    try {
      each.fault();
    } catch (...) {
      const Diagnosis diagnosis = diagnose_current_exception();
      EXPECT_EQ(diagnosis.failure.outcome, each.outcome) << diagnosis.failure.error;
      EXPECT_EQ(diagnosis.device_lost, each.device_lost) << diagnosis.failure.error;
      EXPECT_THAT(diagnosis.failure.error, HasSubstr("m"));
    }
  }
}

}  // namespace
}  // namespace kiln::tuner::protocol_test
