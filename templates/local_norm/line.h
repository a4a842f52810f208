// Parts shared by the descriptors of kernels that keep in registers the elements within reach of windows along one axis
// (lib/local_norm_line.cuh).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "local_norm/local_norm_rows.h"

namespace kiln::descriptor {

/// A request with the layout of its operands that LAYOUT gives, along_rows() or across_rows().
template <RowLayout (*LAYOUT)(const Rows&)>
struct LaidOut : LocalNormRows {
  static LaidOut of(const Request& request) {
    LaidOut rows;
    static_cast<LocalNormRows&>(rows) = LocalNormRows::of(request);
    rows.layout = LAYOUT(rows);
    return rows;
  }

  RowLayout layout;
};

/// Whether a thread that makes `segment` elements along the axis of each of `neighbours` rows can keep them.
bool line_fits_registers(const LocalNormRows& rows, int64_t segment, int64_t neighbours);

/// Why such kernels are not for `rows`, whatever its layout.
std::optional<std::string> line_refusal(const LocalNormRows& rows);

/// The work of a thread for one row.
struct LineWork {
  double reach = 0;         ///< Elements that a window has beside its centre.
  double elements = 0;      ///< Elements of x and of dy that it loads.
  double registers = 0;     ///< Floats that it keeps.
  double instructions = 0;  ///< But for loads and stores.
};
LineWork line_work(const LocalNormRows& rows, double segment);

}  // namespace kiln::descriptor
