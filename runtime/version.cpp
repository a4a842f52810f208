#include "kiln/version.h"

namespace kiln {

std::string_view version() {
  return KILN_VERSION;
}

}  // namespace kiln
