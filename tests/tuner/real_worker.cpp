// What `kiln worker` does, for tests.
#include <unistd.h>

#include "kiln/tuner/worker.h"

int main() {
  return kiln::tuner::worker_main(STDIN_FILENO, STDOUT_FILENO);
}
