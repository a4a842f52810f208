// The texts under templates/ as they were when the library was built; of descriptors a hash and what they include.
// Defined in a file that embed.cmake writes.
#pragma once

#include <map>
#include <string>

namespace kiln {

/// Text by path below templates/: "pool/pool_simple.cu".
std::map<std::string, std::string> embedded_texts();

}  // namespace kiln
