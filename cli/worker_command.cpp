// kiln worker: the other end of the tuner's pipe. Not for people.
#include <unistd.h>

#include "command_line.h"
#include "commands.h"
#include "kiln/tuner/worker.h"

namespace kiln::cli {

void add_worker(Command app, int& exit_code) {
  const Command command = app.add_command("worker", "serve a tuning session (started by `kiln tune`)");
  command.hide();
  command.on_chosen([&exit_code] { exit_code = tuner::worker_main(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace kiln::cli
