// Whether a time that somebody says a variant takes can be true.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kiln/generator/arch.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Why no kernel on the device of this DeviceId line does `request` in `seconds`; nothing if one might. Bounds: the
/// request's arithmetic at the peak rate, and its traffic beyond what any L2 holds at the full memory bandwidth, both a
/// quarter faster than the line's clocks say. Nothing is known, either, of a line that this library cannot read.
std::optional<std::string> impossible_time(const Request& request, const Arch& arch, std::string_view device_id,
                                           double seconds);

}  // namespace kiln
