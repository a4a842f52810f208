#include "kiln/tuner/quarantine.h"

namespace kiln::tuner {

void Quarantine::learn(const Trial& trial) {
  if (!is_suspect(trial.outcome) || trial.source_digest.empty()) return;
  suspects_.insert({trial.source_digest, trial.device, trial.driver_version, trial.nvrtc_version});
}

}  // namespace kiln::tuner
