// kiln tune --status: what a run comes to at a moment, and what is said of all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleet/status.h"

namespace kiln::cli::fleet_status_test {
namespace {

using cache::LayerState;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t heard_at = 1'000'000;

cache::RunProgress progress(std::map<LayerState, std::int64_t> layers, const std::string& part = "",
                            std::optional<std::int64_t> ended = {}) {
  cache::RunProgress result;
  result.session = {"s", "card-id", "plan", "0.1.0", 900'000, ended};
  result.run = {"s", "model.onnx", part, "node7", heard_at, 30.0};
  result.layers = std::move(layers);
  return result;
}

RunStatus status_at(std::int64_t now, cache::RunProgress of) {
  return status_of(std::move(of), {{"card-id", "NVIDIA H200", 9, 0, 132, true}}, "a.db", now);
}

TEST(FleetStatus, ARunIsRunningWhileItIsHeardOf) {
  const RunStatus run = status_at(heard_at + 20'000, progress({{LayerState::done, 1}, {LayerState::running, 1}}));
  EXPECT_EQ(run.state, RunState::running);
  EXPECT_EQ(run.card, "NVIDIA H200");
  EXPECT_EQ(run.seconds_left, 30.0) << "as it said when it was last heard of: it does not run down in silence";
  EXPECT_EQ(run.layers(), 2);
}

TEST(FleetStatus, ARunThatWasKilledIsStoppedOnceItIsSilent) {
  EXPECT_EQ(status_at(heard_at + silence_ms, progress({{LayerState::waiting, 2}})).state, RunState::running);
  const RunStatus run = status_at(
      heard_at + 187'000, progress({{LayerState::done, 1}, {LayerState::running, 1}, {LayerState::waiting, 2}}));
  EXPECT_EQ(run.state, RunState::stopped);
  EXPECT_EQ(run.seconds_left, std::nullopt);
  FleetStatus status;
  status.runs.push_back(run);
  EXPECT_THAT(print_status(status, {}), AllOf(HasSubstr("stopped: silent for 3m07s"),
                                              HasSubstr("layers: 1 done, 0 running, 0 failed, 3 left\n")));
  const nlohmann::json json = json_of(status).value();
  for (const auto& sums : {json["runs"][0], json["cards"][0]}) {
    EXPECT_EQ(sums["running"], 0) << "nobody is at work on what it had begun";
    EXPECT_EQ(sums["left"], 3);
    EXPECT_FALSE(sums.contains("waiting")) << "left is the one word for what is still to be done";
  }
}

TEST(FleetStatus, ARunThatEndedIsDoneOnlyIfNoLayerIsLeft) {
  const auto state = [](std::map<LayerState, std::int64_t> layers) {
    return status_at(heard_at + 1'000'000, progress(std::move(layers), "", heard_at)).state;
  };
  EXPECT_EQ(state({{LayerState::done, 3}, {LayerState::failed, 1}}), RunState::done);
  EXPECT_EQ(state({{LayerState::done, 3}, {LayerState::left, 1}}), RunState::stopped);
  EXPECT_EQ(state({{LayerState::done, 3}, {LayerState::waiting, 1}}), RunState::stopped);
  EXPECT_EQ(state({}), RunState::done) << "a shard may have no layers";
}

TEST(FleetStatus, AClockThatIsAheadIsNoFault) {
  const RunStatus run = status_at(heard_at - 5'000, progress({{LayerState::waiting, 2}}));
  EXPECT_EQ(run.state, RunState::running);
  EXPECT_EQ(run.seconds_left, 30.0);
}

TEST(FleetStatus, PartsThatNobodyHasBegunAreNamed) {
  std::vector<RunStatus> runs;
  for (const char* part : {"0/4", "3/4", "", "odd"}) runs.push_back(status_at(heard_at, progress({}, part)));
  EXPECT_THAT(parts_not_begun(runs),
              ElementsAre("1/4 on NVIDIA H200 of model.onnx", "2/4 on NVIDIA H200 of model.onnx"));
  FleetStatus many;
  many.runs.push_back(status_at(heard_at, progress({}, "0/1000")));
  EXPECT_THAT(print_status(many, {}), AllOf(HasSubstr("shard 20/1000 on"), HasSubstr("not begun: 979 shards more\n"),
                                            Not(HasSubstr("shard 21/1000"))));
  EXPECT_EQ(json_of(many).value()["not_begun"].size(), 999u);
}

TEST(FleetStatus, PartsOfOtherArraysAreNotOfThisOne) {
  std::vector<RunStatus> runs = {status_at(heard_at, progress({}, "0/2")), status_at(heard_at, progress({}, "1/2")),
                                 status_at(heard_at, progress({}, "1/2")), status_at(heard_at, progress({}, "2/3"))};
  runs[1].card = "NVIDIA T4";
  runs[2].progress.run.workload = "other.onnx";
  EXPECT_THAT(parts_not_begun(runs), ElementsAre("1/2 on NVIDIA H200 of model.onnx", "0/3 on NVIDIA H200 of model.onnx",
                                                 "1/3 on NVIDIA H200 of model.onnx", "0/2 on NVIDIA H200 of other.onnx",
                                                 "0/2 on NVIDIA T4 of model.onnx"));
}

TEST(FleetStatus, ACardTakesAsLongAsTheRunThatTakesLongest) {
  cache::RunProgress longest = progress({{LayerState::running, 1}});
  longest.run.seconds_left = 90.0;
  FleetStatus status;
  for (const cache::RunProgress& each : {progress({{LayerState::running, 1}}), longest, progress({}, "", heard_at),
                                         progress({{LayerState::running, 1}})}) {
    status.runs.push_back(status_at(heard_at, each));
  }
  EXPECT_EQ(json_of(status).value()["cards"][0]["seconds_left"], 90.0);
}

TEST(FleetStatus, ARunThatWasEndedEarlyIsNotSilent) {
  FleetStatus status;
  status.runs.push_back(status_at(heard_at + 187'000, progress({{LayerState::left, 1}}, "", heard_at)));
  EXPECT_EQ(status.runs[0].state, RunState::stopped);
  EXPECT_THAT(print_status(status, {}), testing::Not(HasSubstr("silent")));
  EXPECT_EQ(json_of(status).value()["runs"][0]["silent_seconds"], nullptr);
}

TEST(FleetStatus, SumsAndFailuresAreSaid) {
  FleetStatus status;
  cache::RunProgress failing = progress({{LayerState::done, 2}, {LayerState::failed, 1}}, "0/2", heard_at);
  failing.failed = {{"a request", LayerState::failed, "it does not compile"}};
  status.runs.push_back(status_at(heard_at, failing));
  status.runs.push_back(status_at(heard_at, progress({{LayerState::running, 1}, {LayerState::waiting, 4}}, "1/2")));
  status.without_a_run = {"merged.db"};
  const std::string text = print_status(status, {});
  EXPECT_THAT(text, HasSubstr("NVIDIA H200: runs: 1 done, 1 running, 0 stopped; layers: 2 done, 1 running, 1 "
                              "failed, 4 left; 30s left\n"));
  EXPECT_THAT(text, HasSubstr("failed: a request on NVIDIA H200: it does not compile\n"));
  EXPECT_THAT(text, HasSubstr("merged.db: says of no run"));
  const nlohmann::json json = json_of(status).value();
  EXPECT_EQ(json["cards"][0]["left"], 4);
  EXPECT_EQ(json["cards"][0]["seconds_left"], 30.0);
  EXPECT_EQ(json["runs"][0]["failures"][0]["request"], "a request");
  EXPECT_EQ(json["runs"][1]["shard"], "1/2");
  EXPECT_EQ(json["runs"][1]["state"], "running");
}

}  // namespace
}  // namespace kiln::cli::fleet_status_test
