// Worker for tests, as `kiln worker`.
#include <unistd.h>

#include "kiln/tuner/worker.h"

int main() {
  return kiln::tuner::worker_main(STDIN_FILENO, STDOUT_FILENO);
}
