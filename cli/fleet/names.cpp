#include "fleet/names.h"

#include "kiln/base/error.h"
#include "short_forms.h"

namespace kiln::cli {

std::string layer_text(const std::string& request) {
  try {
    return summary(Request::parse(request));
  } catch (const Error&) {
    return request;  // of a newer Kiln, or with user code whose text is not known
  }
}

}  // namespace kiln::cli
