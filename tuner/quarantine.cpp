#include "kiln/tuner/quarantine.h"

namespace kiln::tuner {

void Quarantine::learn(const Trial& trial) {
  if (trial.outcome != Outcome::crashed && trial.outcome != Outcome::timed_out) return;
  if (trial.source_digest.empty()) return;
  suspects_.insert({trial.source_digest, trial.device_id, trial.driver_version, trial.nvrtc_version});
}

}  // namespace kiln::tuner
