// Requests as text.
#pragma once

#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::capi {

/// The requests of a requests file's text; how often each occurs is not asked for. Throws Error: invalid_argument for
/// NULL, parse_error.
std::vector<Request> requests_of(const char* text, std::string_view function);

/// The one request of such a text. As above; throws Error(invalid_argument) also if there is another number of
/// them.
Request request_of(const char* text, std::string_view function);

}  // namespace kiln::capi
