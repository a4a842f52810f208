// Worker processes: where untrusted code is compiled and run, so that a crash or a hang costs a process, not the
// application.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/laboratory.h"

namespace kiln::tuner {

/// Main function of a worker process (`kiln worker`): reads commands from `in`, answers on `out`, until `in` ends.
///
/// If the other side goes away while a command is at work, the process exits at once. Returns the exit code. Standard
/// output is redirected to standard error, so that a library's message cannot get between the answers.
int worker_main(int in, int out);

/// The program to start as worker: `named` (Environment::worker) if given, else `kiln` beside the binary that contains
/// this library or beside the running program, or in ../bin from there. Throws Error(missing_library) with the places
/// that were looked at if there is none, or if `named` cannot be executed.
std::string find_worker(const std::optional<std::string>& named);

struct WorkerPoolOptions {
  std::string worker;                            ///< Path of the program; see find_worker().
  std::vector<std::string> arguments{"worker"};  ///< Arguments that make it a worker.
  std::optional<std::string> driver{};           ///< As Environment::driver.
  std::optional<std::string> nvrtc{};            ///< As Environment::nvrtc.
  /// Where workers keep what they compiled, so that using a tuned variant does not compile it again; unset: nowhere.
  std::optional<store::StoreOptions> kernels{};
  int device = 0;             ///< Ordinal
  size_t compile_lanes = 0;   ///< 0: as many as there are hardware threads.
  double open_limit = 60;     ///< Seconds for a worker to load its libraries and to open the device: disks may be cold.
  double compile_limit = 60;  ///< Seconds until a compile is taken for hung.
  double run_limit = 60;      ///< Seconds until a check or a sample is taken for hung.
  double begin_limit = 300;   ///< The same for making operands and running the trusted variant.
  checking::CheckOptions check{};
};

/// The real Laboratory: one process per compile lane, and one that measures. This process holds no CUDA context and
/// loads no driver.
///
/// Starts the measuring process and one compiler. Throws Error if either cannot be started or cannot open its library,
/// or the device does not exist.
std::unique_ptr<Laboratory> make_worker_pool(WorkerPoolOptions options);

}  // namespace kiln::tuner
