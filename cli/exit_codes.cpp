#include "exit_codes.h"

#include <array>

namespace kiln::cli {

std::span<const ExitMeaning> exit_meanings() {
  static constexpr std::array<ExitMeaning, 8> meanings = {{
      {success, "success"},
      {failed_check,
       "a result was wrong, a layer could not be served, lines of a pack were refused, or variants were too few"},
      {usage, "wrong usage or input: a flag, variable, request, model or pack"},
      {no_device, "no driver, device, NVRTC or worker; or a device was lost on the way; measured results are kept"},
      {io, "a file or the output could not be read or written"},
      {not_kept, "layers were tuned, and the results could not be kept"},
      {interrupted, "interrupted; measured results are kept"},
      {terminated, "ended by SIGTERM; measured results are kept, and the same command continues"},
  }};
  return meanings;
}

}  // namespace kiln::cli
