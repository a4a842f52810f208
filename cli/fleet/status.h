// How far a fleet's tuning is, by the databases that its jobs write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json.h"
#include "kiln/cache/database.h"
#include "output.h"

namespace kiln::cli {

/// A run that has said nothing for so long is not running: it says something every heartbeat_ms.
inline constexpr std::int64_t silence_ms = 60'000;

enum class RunState {
  running,
  done,     ///< Ended; every layer is done or failed.
  stopped,  ///< Ended before that, or said nothing for silence_ms: it was killed, or its machine is gone.
};
std::string_view to_string(RunState state);

/// One run: a shard on a card.
struct RunStatus {
  std::string file;
  std::string card;  ///< "NVIDIA H200".
  /// Its layers are done, running, failed or left: what has not been begun is left, and so is all that a stopped run
  /// had begun. None waits.
  cache::RunProgress progress;
  RunState state = RunState::running;
  double silent_seconds = 0;           ///< Since it was last heard of.
  std::optional<double> seconds_left;  ///< Seconds to go of a running one, as it estimated when it was last heard of.

  std::int64_t layers(cache::LayerState state) const;
  std::int64_t layers() const;
};

struct FleetStatus {
  struct Unread {
    std::string file, reason, hint;
  };
  std::vector<RunStatus> runs;             ///< By file, then start.
  std::vector<std::string> without_a_run;  ///< Files that can be read and say of no run.
  std::vector<Unread> unread;
};

/// State of `progress` at `now_ms`. The clocks of the machines should agree, but for some seconds.
RunStatus status_of(cache::RunProgress progress, const std::vector<cache::DeviceEntry>& devices, std::string file,
                    std::int64_t now_ms);
/// Never throws for a file that cannot be read: it is named in `unread`.
FleetStatus read_status(const std::vector<std::string>& files, std::int64_t now_ms);

/// The parts of an array of jobs that no database says anything of: "shard 3/8 on NVIDIA H200 of model.onnx".
std::vector<std::string> parts_not_begun(const std::vector<RunStatus>& runs);

std::string print_status(const FleetStatus& status, const Output& output);
Json json_of(const FleetStatus& status);

/// `kiln tune --status FOLDER`. Returns the exit code.
int show_status(const std::string& folder, const Output& output);

}  // namespace kiln::cli
