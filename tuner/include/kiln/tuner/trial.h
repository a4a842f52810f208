// Trial: what became of one variant of one request on one device. The session hands each one to its sink.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/device/resource_log.h"
#include "kiln/generator/catalogue.h"

namespace kiln::tuner {

/// How a trial ended. All are expected: none is an exception.
enum class Outcome {
  timed,           ///< Checked, then timed until its place was settled.
  rejected_early,  ///< Checked; timing stopped early because it was clearly slower. Has a time.
  refused,         ///< The algorithm or one of its rules refused the point. Nothing was compiled.
  compile_failed,  ///< NVRTC or the driver's loader rejected it.
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

struct Trial {
  std::string request;  ///< The request's key.
  Choice choice;
  Outcome outcome = Outcome::refused;

  std::vector<double> samples;  ///< Seconds, in the order taken.
  double median = 0;            ///< Seconds; 0 where there is no time.
  double spread = 0;            ///< Half-width of the median's confidence interval, seconds.
  double estimate = 0;          ///< Predicted seconds.
  std::string check;            ///< The check's verdict in words, with the largest error and its bound.
  std::string error;            ///< Refusal, compiler log, driver's text or fault report; empty if all went well.

  int64_t workspace_bytes = 0;
  bool deterministic = true;  ///< Bitwise reproducible.
  device::KernelResources resources;
  int dynamic_shared = 0;  ///< Bytes; the most of any launch.
  double compile_seconds = 0;

  std::string device_id;  ///< device::DeviceInfo::id()
  bool modelled = false;  ///< The time is the emulator's model, not a measurement.
  std::string driver_version, nvrtc_version;
  std::string algorithm_digest;
  std::string source_digest;  ///< Program::digest(); empty if nothing was generated.
};

/// The winner: of the trials with a time that tie with the fastest, the first by TieRank (kiln/base/tie.h). So a retune
/// picks the same one. Null if none has a time.
const Trial* winner(const std::vector<Trial>& trials);

/// The trials with a time and at most `workspace_limit` bytes of workspace, best first, ties ordered as in winner().
std::vector<const Trial*> ranking(const std::vector<Trial>& trials, int64_t workspace_limit);

}  // namespace kiln::tuner
