// Charts of times as inline SVG. Positions are percentages and sizes are pixels: a chart is as wide as its place, and
// its marks and text never shrink. Marks differ in shape, so that they can be told apart without colour.
#pragma once

#include <string>
#include <vector>

#include "report/axis.h"

namespace kiln::cli {

enum class Mark {
  tuned,      ///< A filled diamond
  fallback,   ///< A square: the default choice
  candidate,  ///< A ring
  roofline,   ///< A dashed vertical line
};

/// A mark as it stands in a legend.
std::string glyph(Mark mark);

/// A bar from zero: the tuned time filled, the default choice's framed, the roofline a line across. `fallback` is 0
/// where there is none.
std::string bar_chart(double tuned, double fallback, double roofline);

struct SpreadPoint {
  double seconds = 0;
  double spread = 0;  ///< Half-width of the median's confidence interval, seconds; 0 if there is none.
  bool tuned = false, fallback = false;
  std::string label{};  ///< Plain text
};

/// All candidates of a layer on one axis of times; points that would cover each other are stacked. A roofline left of
/// the axis is not drawn.
std::string spread_chart(const LogAxis& axis, double roofline, std::vector<SpreadPoint> points);

/// One candidate's samples on the axis: from the fastest to the slowest, with the median.
std::string range_chart(const LogAxis& axis, double fastest, double median, double slowest);

}  // namespace kiln::cli
