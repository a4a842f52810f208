// Tables of times that a tuner measured on a GPU: bench/measured/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge.h"
#include "kiln/generator/calibration.h"
#include "kiln/generator/catalogue.h"

namespace kiln::bench {

struct MeasuredVariant {
  Choice choice;
  double seconds = 0;
  std::string source;  ///< Digest of the program that was measured.
};

struct MeasuredLayer {
  std::string request;  ///< Its key.
  std::vector<MeasuredVariant> variants;

  Times times() const;
};

struct MeasuredTable {
  std::string device;  ///< "NVIDIA H100 80GB HBM3"
  std::optional<Calibration> calibration;
  std::vector<MeasuredLayer> layers;  ///< In the order of their first lines.
};

/// Throws Error(io_error); Error(parse_error) with the line.
MeasuredTable read_measured(const std::string& path);

/// Leaves out variants that there are no longer and, with `unchanged`, those whose source is no longer the one that was
/// measured, to the letter; and layers without others. Returns a sentence about both.
std::string leave_out_changed(MeasuredTable& table, const Catalogue& catalogue, const Target& target, bool unchanged);

}  // namespace kiln::bench
