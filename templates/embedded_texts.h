// The texts under templates/ as they were when the library was built; of descriptors, and of what of the generator
// shapes sources, a digest and what they include.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kiln {

/// Text by path below templates/: "pool/pool_simple.cu". Files of the generator have the path that includes name:
/// "kiln/generator/dtype.h", "kiln/generator/dtype.cpp".
std::map<std::string, std::string> embedded_texts();

/// All of them as compressed() makes them of paths and texts in turn, each ended by a zero. Defined in a file that
/// embed.cpp writes.
extern const std::string_view embedded_bytes;

}  // namespace kiln
