// Names of things in messages: these speak of the C++ API, and a caller of C reads them in its own terms.
#pragma once

#include <string>

namespace kiln::capi {

/// `text`, an Error's message or hint, with C's functions, fields and constants for those of C++.
std::string in_words_of_c(std::string text);

}  // namespace kiln::capi
