// The commands of the `kiln` program. Each adds itself to the application and, when chosen, runs and sets the exit
// code.
#pragma once

namespace CLI {
class App;
}

namespace kiln::cli {

/// What the program returns.
enum ExitCode : int {
  success = 0,
  failed_check = 1,   ///< A result was wrong, or a layer could not be tuned or run.
  usage = 2,          ///< A flag, request, model or pack is wrong.
  no_device = 3,      ///< No driver, device, NVRTC or worker.
  io = 4,             ///< A file could not be read or written.
  interrupted = 130,  ///< Stopped by Ctrl-C; what was measured is kept.
};

void add_tune(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_emit(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_bundle(CLI::App& app, int& exit_code);
void add_devices(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);

}  // namespace kiln::cli
