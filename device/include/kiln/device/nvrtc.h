// NVRTC: CUDA C++ source to PTX and cubin, in this process.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/device/driver.h"
#include "kiln/device/resource_log.h"

namespace kiln::device {

/// Which NVRTC to load.
struct NvrtcChoice {
  /// As Environment::nvrtc: the path of libnvrtc. Unset: libnvrtc.so.13, .12, .11.2 or libnvrtc.so, first beside the
  /// binary that contains Kiln and in ../lib from there (where scripts/setup has the PyPI wheel put), then on the
  /// loader's path, then in the toolkit's default folder.
  std::optional<std::string> library;
};

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const NvrtcVersion&) const = default;
};

struct CompileOptions {
  std::string arch;                ///< "sm_90a" (real: PTX, cubin and resources) or "compute_90" (virtual: PTX only).
  std::string standard = "c++17";  ///< Language level.
  std::vector<std::string> extra = {};  ///< Further NVRTC options, last: "--maxrregcount=128", "-DN=4".
};

/// The product of one compile.
struct Compiled {
  std::string ptx;
  std::string cubin;                       ///< Empty for a virtual architecture.
  std::string log;                         ///< Warnings, and ptxas' report.
  std::vector<KernelResources> resources;  ///< Empty for a virtual architecture.
  double seconds = 0;                      ///< Wall-clock time of the compile.

  /// Image to load on `driver` (loadable_image()).
  std::string image(const Driver& driver) const;
};

/// Work of an Nvrtc so far.
struct NvrtcWork {
  uint64_t compiles = 0;
  double seconds = 0;  ///< Sum over all threads.
};

/// A loaded NVRTC, 11.8 up to 13.x.
///
/// Immutable; compile() may run on several threads at the same time (each call has its own program; NVRTC serialises
/// parts of it inside: processes scale better than threads). Where libcuda is found, NVRTC 13 opens it itself.
class Nvrtc {
 public:
  /// Throws Error(missing_library) with the places that were tried, the loader's reasons and what to install.
  static std::shared_ptr<const Nvrtc> open(const NvrtcChoice& choice);

  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  NvrtcVersion version() const { return version_; }
  /// The library file that was loaded.
  const std::string& path() const { return path_; }

  /// Compute capabilities it can compile for, as 10 * major + minor, ascending: 75, 80, ..., 120.
  const std::vector<int>& supported_archs() const { return archs_; }
  bool supports(int cc_major, int cc_minor) const;

  /// The options that compile() passes, in order. They shape the binary: digest them with the source.
  std::vector<std::string> options(const CompileOptions& options) const;

  /// Compiles one self-contained source; `name` is what messages call it ("conv_direct.cu").
  ///
  /// Throws Error(compile_failed) with NVRTC's log, which cites `name` and line; Error(unsupported) if this NVRTC does
  /// not know the architecture. Cannot be interrupted: run it in a process of its own where a time limit matters.
  Compiled compile(const std::string& source, const std::string& name, const CompileOptions& options) const;

  /// The compiles that succeeded.
  NvrtcWork work() const;

 private:
  struct Table;
  Nvrtc(std::unique_ptr<const Table> table, std::string path);

  void require_arch(const std::string& arch) const;

  std::unique_ptr<const Table> table_;
  std::string path_;
  NvrtcVersion version_;
  std::vector<int> archs_;
  mutable std::atomic<uint64_t> compiles_ = 0, nanoseconds_ = 0;
};

/// Checks that code compiled by `nvrtc` can be loaded by `driver`: a driver runs cubins of its own major version of
/// CUDA and of older ones. Throws Error(unsupported) naming both versions and what to install. The emulated driver
/// takes all.
void require_driver_for(const Nvrtc& nvrtc, const Driver& driver);

}  // namespace kiln::device
