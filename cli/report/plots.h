// Plots of all layers as inline SVG, drawn as the charts are (chart.h): across in percent, down in pixels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart.h"

namespace kiln::cli {

/// A part of a stacked bar.
struct Part {
  size_t number = 0;  ///< Number of the layer, from 1: the part is a link to it. 0: several layers together.
  std::string label;  ///< Plain text, of which as much is shown as fits.
  std::string title;  ///< Plain text: the whole of it, for whoever points at the part.
  double seconds = 0;
};

/// Parts side by side, in a bar that fills its place if they sum to `whole` seconds. `kind`: tuned or fallback.
std::string stacked_bar(const std::vector<Part>& parts, double whole, Mark kind);

/// A layer on the roofline; all its numbers are above 0, but for what says otherwise.
struct RooflinePoint {
  size_t number = 0;
  std::string title;  ///< Plain text
  double flops_per_byte = 0;
  double flops_per_second = 0;           ///< Reached
  double fallback_flops_per_second = 0;  ///< Reached by the default choice; 0 where that is not known.
  double share = 0;                      ///< Share of the time of all layers, 0 to 1: the size of the dot.
};

struct Roof {
  std::string label;
  double flops_per_second = 0;
};

/// Log-log: arithmetic for each byte against the rate reached, below the lines of memory and of each of `roofs`. The
/// dots of layers with a larger share of the time have their numbers, where there is room. At least a roof and a point.
std::string roofline_plot(double bytes_per_second, std::vector<Roof> roofs, std::vector<RooflinePoint> points);

struct Gain {
  size_t number = 0;
  std::string title;  ///< Plain text
  double ratio = 0;   ///< Time of the default choice by the tuned time; 0 where it is not known: no bar.
};

/// A bar for each layer, in this order, from 1x up (or down) to its gain, on a logarithmic axis. One has a ratio.
std::string gain_plot(const std::vector<Gain>& gains);

}  // namespace kiln::cli
