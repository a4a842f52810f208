// How indices of the maxima of pooling are filled.
#include <algorithm>
#include <limits>
#include <vector>

#include "filling.h"
#include "kiln/generator/operations/pool_window.h"

namespace kiln::reference {
namespace {

// A position in the window of an output, -1 for a tap outside; now and then any position of the channel, and among
// special values also what is none.
int64_t draw_position(const std::vector<WindowAxis>& axes, int64_t positions, std::span<const int64_t> output,
                      Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  const uint64_t draw = bits / seldom;
  if (bits % seldom == 0) return static_cast<int64_t>(draw % (static_cast<uint64_t>(positions) + 1)) - 1;
  if (values == Values::specials && bits % seldom == 1) {
    constexpr auto least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
    return draw % 3 == 0 ? least : draw % 3 == 1 ? most : std::min<int64_t>(positions, most);
  }
  uint64_t rest = draw;
  int64_t position = 0;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const auto taps = static_cast<uint64_t>(axes[axis].window);
    const int64_t along = axes[axis].position(output[axis], static_cast<int64_t>(rest % taps));
    if (!axes[axis].inside(along)) return -1;
    position = position * axes[axis].extent + along;
    rest /= taps;
  }
  return position;
}

}  // namespace

Filling filling_of_positions(const Request& request, std::string_view operand, Values values) {
  const std::optional<int64_t> positions = pooled_positions(request, operand);
  if (!positions) return {};
  return [axes = pooled_axes(request, operand), positions = *positions, values](std::span<const int64_t> coordinate,
                                                                                uint64_t bits) {
    return static_cast<double>(draw_position(axes, positions, coordinate.subspan(2), values, bits));
  };
}

}  // namespace kiln::reference
