// The texts under templates/ as they were when the library was built; of descriptors, and of what of the generator
// shapes sources, a digest and what they include. Defined in a file that embed.cpp writes.
#pragma once

#include <map>
#include <string>

namespace kiln {

/// Text by path below templates/: "pool/pool_simple.cu". Files of the generator have the path that includes name:
/// "kiln/generator/dtype.h", "kiln/generator/dtype.cpp".
std::map<std::string, std::string> embedded_texts();

}  // namespace kiln
