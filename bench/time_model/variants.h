// Kiln's variants whose times a tuner measured on a GPU, against the clock of an emulated one.
#pragma once

#include <string>

namespace kiln::bench {

struct VariantOptions {
  std::string table;  ///< Path of a table of bench/measured/.
  std::string times;  ///< File that keeps modelled times: those that it has are not modelled again.
  bool every = false;
  bool unchanged = false;  ///< Only variants whose source is the one that was measured.
};

/// Prints how well the clock of KILN_DRIVER's device tells the times of the table: by kind of kernel, and by layer.
/// Throws Error(invalid_argument) if the device has another card than the table's.
void judge_variants(const VariantOptions& options);

}  // namespace kiln::bench
