// What a command works on: an ONNX model, a requests file, or one request in quotes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kiln/tuner/session.h"

namespace CLI {
class App;
}

namespace kiln::cli {

struct Input {
  std::string text;                      ///< model.onnx | requests file | 'request'
  std::string dtype;                     ///< for models; empty: f32, with `whole` the model's own
  std::string layout = "nchw";           ///< for models
  std::string batch;                     ///< for models: a number, or `?` or `?N` for a dynamic batch
  bool no_fuse = false;                  ///< for models
  bool constant_weights = false;         ///< for models
  bool whole = false;                    ///< for models: the calls of `kiln infer`, not the layers one by one
  std::vector<std::string> expressions;  ///< files that define user code

  /// Adds the positional argument and the flags for models to a command.
  void add_to(CLI::App& command);
};

/// A node type of a model that no request covers.
struct NotCovered {
  std::string operation;
  int64_t count = 0;
  std::string reason;
};

struct Workload {
  std::vector<tuner::Job> jobs;  ///< No two with one key.
  std::vector<NotCovered> not_covered;
};

/// A line for each node type that no request covers: "not covered: 3 x MaxPool: ...".
std::string not_covered_text(const std::vector<NotCovered>& nodes);
nlohmann::ordered_json not_covered_json(const std::vector<NotCovered>& nodes);

/// The expressions that `files` define; requests in them are passed over, so that what KILN_RECORD wrote will do.
/// Throws Error: parse_error with file and position, io_error.
Expressions read_expressions(const std::vector<std::string>& files);
/// Adds --expression to a command.
void add_expressions_to(CLI::App& command, std::vector<std::string>& files);

/// Throws Error: parse_error with file and position, io_error, invalid_argument (a flag that does not apply).
Workload read_workload(const Input& input);

}  // namespace kiln::cli
