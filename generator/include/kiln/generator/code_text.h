// Part of a source text that a compiler sees: digests are made of it.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

/// A C++ or CUDA source without comments, blank lines and blanks at both ends of lines; other blanks in a row become
/// one. Literals stay as they are, and so do the ends of lines, because they end directives.
///
/// Equal code gives equal text however it is laid out in its lines. The text is for digests and comparisons: lines have
/// other numbers than in `source`.
std::string code_of(std::string_view source);

}  // namespace kiln
