// TrialFacts: the part of a tried variant that the tuner reports and the cache stores, which do not know each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Facts of one variant of one request on one device. The tuner's Trial and the cache's Record add to them how each
/// names the variant and its outcome.
struct TrialFacts {
  std::string request;           ///< The request's canonical line.
  std::string device;            ///< device::DeviceInfo::id()
  std::string algorithm_digest;  ///< Digest of template, lib and descriptor.
  std::string source_digest;     ///< Program::digest(); empty if nothing was generated.
  std::string driver_version, nvrtc_version;

  double seconds = 0;           ///< Median; 0 where there is no time.
  double spread = 0;            ///< Half-width of the confidence interval of the median, in seconds.
  std::vector<double> samples;  ///< Seconds, in the order taken.
  std::string check;            ///< The check's verdict in words, with the largest error and its bound.
  std::string error;            ///< Refusal, compiler log, driver's text or fault report; empty if all went well.

  std::int64_t workspace_bytes = 0;
  bool deterministic = true;  ///< Bitwise reproducible.

  friend bool operator==(const TrialFacts&, const TrialFacts&) = default;
};

}  // namespace kiln
