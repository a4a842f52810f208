// Tables of times that others have measured, and how to make the kernels that they are of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/timing/interpret.h"

namespace kiln::bench {

struct Row {
  std::map<std::string, int> values;  // the parameters
  double milliseconds = 0;            // median
  std::string label;                  // in place of parameters
  bool raised = false;                // measured at a higher clock than the table's others: faster than its twin by far
};

struct Table {
  std::string name;
  std::string arch;  // "sm_80"
  std::string card;
  uint32_t clock_mhz = 0;                      // that the card had: docs/time-model.md
  std::string file;                            // in the folder of tables
  std::string source;                          // in the same folder
  std::string kernel;                          // part of its name
  std::map<std::string, std::string> defines;  // besides the row's
  timing::Launch (*launch)(const Row& row) = nullptr;
  double flop = 0;  // of a row, for tables that hold TFLOP/s; 0: they hold times
};

const std::vector<Table>& tables();

/// The rows that ran. Throws Error(io_error), Error(parse_error).
std::vector<Row> read_rows(const Table& table, const std::string& folder);

/// The CUDA source of a row.
std::string source_of(const Table& table, const Row& row, const std::string& folder);

/// "block_size_x=32 ..."
std::string to_string(const Row& row);

}  // namespace kiln::bench
