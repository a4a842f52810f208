// Interface of kiln._kiln for the package's other extension modules, so that what must be one stays one: the GIL at the
// interpreter's end, and memory of the host that the emulated device reaches.
#pragma once

#include <functional>
#include <span>

#include "kiln/context.h"
#include "kiln/epilogue.h"

namespace kiln::python {

/// Called without the GIL. Its address is handed over in a capsule with this name, by who keeps it.
using Work = std::function<void(Context&, std::span<const NamedTensor>, Stream)>;
inline constexpr const char* name_of_work = "kiln.work";

}  // namespace kiln::python
