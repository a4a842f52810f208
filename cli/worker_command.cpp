// kiln worker: the other end of the tuner's pipe. Not for people.
#include <unistd.h>

#include <CLI/App.hpp>

#include "commands.h"
#include "kiln/tuner/worker.h"

namespace kiln::cli {

void add_worker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "serve a tuning session (started by `kiln tune`)");
  command->group("");  // hidden
  command->callback([&exit_code] { exit_code = tuner::worker_main(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace kiln::cli
