#include "fleet/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cache_commands.h"
#include "database.h"
#include "exit_codes.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/tuner/shard.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

using cache::LayerState;
std::string card_of(const cache::Session& session, const std::vector<cache::DeviceEntry>& devices) {
  for (const cache::DeviceEntry& device : devices) {
    if (device.id == session.device) return device.name;
  }
  return session.device;
}

std::string state_text(const RunStatus& run) {
  if (run.state != RunState::stopped || run.progress.session.ended_ms) return std::string(to_string(run.state));
  return fmt::format("stopped: silent for {}", duration_text(run.silent_seconds));
}

std::string left_text(const std::optional<double>& seconds) {
  return seconds ? duration_text(*seconds) : "-";
}

// The sums of one card.
struct CardStatus {
  std::map<RunState, std::int64_t> runs;
  std::map<LayerState, std::int64_t> layers;
  std::optional<double> seconds_left;  // of the run that takes longest

  void add(const RunStatus& run) {
    ++runs[run.state];
    for (const auto& [state, count] : run.progress.layers) layers[state] += count;
    if (run.seconds_left) seconds_left = std::max(seconds_left.value_or(0), *run.seconds_left);
  }
  std::int64_t of(RunState state) const { return runs.contains(state) ? runs.at(state) : 0; }
  std::int64_t of(LayerState state) const { return layers.contains(state) ? layers.at(state) : 0; }
};

void count_as_left(LayerState state, std::map<LayerState, std::int64_t>& layers) {
  const auto found = layers.extract(state);
  if (!found.empty()) layers[LayerState::left] += found.mapped();
}

std::map<std::string, CardStatus> by_card(const std::vector<RunStatus>& runs) {
  std::map<std::string, CardStatus> cards;
  for (const RunStatus& run : runs) cards[run.card].add(run);
  return cards;
}

Json json_of(const RunStatus& run) {
  Json failed = Json::array();
  for (const cache::RunLayer& layer : run.progress.failed) {
    failed.push_back({{"request", layer.request}, {"error", layer.error}});
  }
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  const cache::Session& session = run.progress.session;
  Json result = {{"file", run.file},
                 {"device", session.device},
                 {"card", run.card},
                 {"workload", run.progress.run.workload},
                 {"shard", run.progress.run.part.empty() ? Json(nullptr) : Json(run.progress.run.part)},
                 {"host", run.progress.run.host},
                 {"state", to_string(run.state)},
                 {"layers", run.layers()}};
  for (const LayerState state : {LayerState::done, LayerState::running, LayerState::failed, LayerState::left}) {
    result.set(std::string(cache::to_string(state)), run.layers(state));
  }
  result.set("seconds_left", optional(run.seconds_left));
  result.set("started", cache::format_utc(session.started_ms));
  result.set("ended", session.ended_ms ? Json(cache::format_utc(*session.ended_ms)) : Json(nullptr));
  result.set("silent_seconds", session.ended_ms ? Json(nullptr) : Json(run.silent_seconds));
  result.set("failures", failed);
  return result;
}

}  // namespace

std::string_view to_string(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::done:
      return "done";
    case RunState::stopped:
      return "stopped";
  }
  return "unknown";
}

std::int64_t RunStatus::layers(LayerState wanted) const {
  const auto found = progress.layers.find(wanted);
  return found == progress.layers.end() ? 0 : found->second;
}

std::int64_t RunStatus::layers() const {
  std::int64_t sum = 0;
  for (const auto& [each, count] : progress.layers) sum += count;
  return sum;
}

RunStatus status_of(cache::RunProgress progress, const std::vector<cache::DeviceEntry>& devices, std::string file,
                    std::int64_t now_ms) {
  RunStatus result;
  result.file = std::move(file);
  result.card = card_of(progress.session, devices);
  result.progress = std::move(progress);
  const std::int64_t silent = std::max<std::int64_t>(now_ms - result.progress.run.seen_ms, 0);
  result.silent_seconds = static_cast<double>(silent) / 1000;
  if (result.progress.session.ended_ms) {
    const bool all = result.layers(LayerState::done) + result.layers(LayerState::failed) == result.layers();
    result.state = all ? RunState::done : RunState::stopped;
  } else if (silent > silence_ms) {
    result.state = RunState::stopped;
  } else {
    result.seconds_left = result.progress.run.seconds_left;
  }
  count_as_left(LayerState::waiting, result.progress.layers);
  if (result.state == RunState::stopped) count_as_left(LayerState::running, result.progress.layers);
  return result;
}

FleetStatus read_status(const std::vector<std::string>& files, std::int64_t now_ms) {
  FleetStatus status;
  for (const std::string& file : files) {
    try {
      const cache::Database database = open_or_fail(file, cache::OpenMode::read_only);
      std::vector<cache::RunProgress> runs = database.runs();
      if (runs.empty()) status.without_a_run.push_back(file);
      const std::vector<cache::DeviceEntry> devices = database.devices();
      for (cache::RunProgress& run : runs) {
        status.runs.push_back(status_of(std::move(run), devices, file, now_ms));
      }
    } catch (const Error& error) {
      status.unread.push_back({file, error.message(), error.hint()});
    }
  }
  return status;
}

std::vector<std::string> parts_not_begun(const std::vector<RunStatus>& runs) {
  std::map<std::tuple<std::string, std::string, uint64_t>, std::set<uint64_t>> begun;  // card, workload, parts
  for (const RunStatus& run : runs) {
    if (run.progress.run.part.empty()) continue;
    try {
      const tuner::Shard shard = tuner::Shard::parse(run.progress.run.part);
      begun[{run.card, run.progress.run.workload, shard.count}].insert(shard.index);
    } catch (const Error&) {
      continue;  // a label of somebody's own
    }
  }
  std::vector<std::string> missing;
  for (const auto& [array, parts] : begun) {
    const auto& [card, workload, count] = array;
    for (uint64_t i = 0; i < count; ++i) {
      if (!parts.contains(i)) missing.push_back(fmt::format("{}/{} on {} of {}", i, count, card, workload));
    }
  }
  return missing;
}

std::string print_status(const FleetStatus& status, const Output& output) {
  Table runs({"database", "shard", "card", "state", ">layers", ">done", ">running", ">failed", ">left", ">time left",
              "host", "workload"});
  for (const RunStatus& run : status.runs) {
    const std::string part = run.progress.run.part.empty() ? "-" : run.progress.run.part;
    runs.add({run.file, part, run.card, state_text(run), std::to_string(run.layers()),
              std::to_string(run.layers(LayerState::done)), std::to_string(run.layers(LayerState::running)),
              std::to_string(run.layers(LayerState::failed)), std::to_string(run.layers(LayerState::left)),
              left_text(run.seconds_left), run.progress.run.host, run.progress.run.workload});
  }
  std::string text = runs.empty() ? "" : output.print(runs);
  for (const auto& [card, sum] : by_card(status.runs)) {
    text += fmt::format("{}: runs: {} done, {} running, {} stopped; layers: {} done, {} running, {} failed, {} left",
                        card, sum.of(RunState::done), sum.of(RunState::running), sum.of(RunState::stopped),
                        sum.of(LayerState::done), sum.of(LayerState::running), sum.of(LayerState::failed),
                        sum.of(LayerState::left));
    text += sum.seconds_left ? fmt::format("; {} left\n", duration_text(*sum.seconds_left)) : "\n";
  }
  constexpr size_t most_named = 20;  // --json has all
  const std::vector<std::string> missing = parts_not_begun(status.runs);
  for (size_t i = 0; i < std::min(missing.size(), most_named); ++i)
    text += fmt::format("not begun: shard {}\n", missing[i]);
  if (missing.size() > most_named)
    text += fmt::format("not begun: {} more\n", count_text(missing.size() - most_named, "shard"));
  for (const RunStatus& run : status.runs) {
    for (const cache::RunLayer& layer : run.progress.failed) {
      text += fmt::format("failed: {} on {}: {}\n", layer.request, run.card, in_one_line(layer.error));
    }
  }
  for (const std::string& file : status.without_a_run) {
    text += fmt::format("{}: says of no run (merged from others, or of an older Kiln)\n", file);
  }
  return text;
}

Json json_of(const FleetStatus& status) {
  Json runs = Json::array(), cards = Json::array(), unread = Json::array();
  for (const RunStatus& run : status.runs) runs.push_back(json_of(run));
  for (const auto& [card, sum] : by_card(status.runs)) {
    cards.push_back({{"card", card},
                     {"runs_done", sum.of(RunState::done)},
                     {"runs_running", sum.of(RunState::running)},
                     {"runs_stopped", sum.of(RunState::stopped)},
                     {"done", sum.of(LayerState::done)},
                     {"running", sum.of(LayerState::running)},
                     {"failed", sum.of(LayerState::failed)},
                     {"left", sum.of(LayerState::left)},
                     {"seconds_left", sum.seconds_left ? Json(*sum.seconds_left) : Json(nullptr)}});
  }
  for (const FleetStatus::Unread& file : status.unread)
    unread.push_back({{"file", file.file}, {"reason", file.reason}});
  return {{"runs", runs},
          {"cards", cards},
          {"not_begun", parts_not_begun(status.runs)},
          {"without_a_run", status.without_a_run},
          {"unread", unread}};
}

int show_status(const std::string& folder, const Output& output) {
  const FleetStatus status = read_status(gather({folder}, FilesOf::databases), cache::utc_now_ms());
  if (output.json)
    print_json(json_of(status));
  else
    fmt::print("{}", printable(print_status(status, output)));
  for (const FleetStatus::Unread& file : status.unread) {
    fmt::print(stderr, "kiln: not read: {}\n      {}\n", file.reason, file.hint);
  }
  return status.unread.empty() ? success : io;
}

}  // namespace kiln::cli
