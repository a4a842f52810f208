// Trial: what became of one variant of one request on one device. The session hands each one to its sink.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/base/trial_facts.h"
#include "kiln/device/resource_log.h"
#include "kiln/generator/catalogue.h"

namespace kiln::tuner {

/// How a trial ended. All are expected: none is an exception.
enum class Outcome {
  timed,           ///< Checked, then timed until its place was settled.
  rejected_early,  ///< Checked; timing stopped early because it was clearly slower. Has a time.
  refused,         ///< The algorithm or one of its rules refused the point. Nothing was compiled.
  compile_failed,  ///< NVRTC or the driver's loader rejected it.
  spills,          ///< Its registers do not suffice, and memory stands in for some: not run, because others serve.
  wrong_result,    ///< The check failed: a wrong element, a write outside of the output, or a changed input.
  timed_out,       ///< Compiling or running exceeded the time limit, twice.
  crashed,         ///< The process that compiled or ran it died, or the kernel faulted, twice.
  out_of_memory,   ///< Says nothing about the variant: never quarantined, tried again by the next session.
  quarantined,     ///< Not tried, because the same source failed before on this device, driver and NVRTC.
};

/// "timed", "rejected_early", ...: what is stored.
std::string_view to_string(Outcome outcome);
/// The inverse; nothing for any other text.
std::optional<Outcome> parse_outcome(std::string_view text);

/// Whether trials with this outcome have a time and may win.
bool has_time(Outcome outcome);
/// Whether repeating the trial with the same versions would tell nothing new.
bool is_conclusive(Outcome outcome);
/// Whether it puts the source into quarantine: it crashed or hung.
bool is_suspect(Outcome outcome);

struct Trial : TrialFacts {
  Choice choice;
  Outcome outcome = Outcome::refused;
  double estimate = 0;    ///< Predicted seconds.
  bool modelled = false;  ///< The time is the emulator's model, not a measurement.
  device::KernelResources resources;
  int dynamic_shared = 0;  ///< Bytes; the most of any launch.
  double compile_seconds = 0;
};

/// The winner: of the trials with a time that tie with the fastest, the first by TieRank (kiln/base/tie.h). So a retune
/// picks the same one. Null if none has a time.
const Trial* winner(const std::vector<Trial>& trials);

/// The trials with a time and at most `workspace_limit` bytes of workspace, best first, ties ordered as in winner().
std::vector<const Trial*> ranking(const std::vector<Trial>& trials, int64_t workspace_limit);

}  // namespace kiln::tuner
