// Input of a command: an ONNX model, a requests file, or one request in quotes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "json.h"
#include "kiln/tuner/session.h"
#include "model_flags.h"

namespace kiln::cli {

struct Input {
  std::string text{};                      ///< model.onnx | requests file | 'request'
  ModelFlags model{};                      ///< for models
  std::vector<std::string> sweeps{};       ///< for requests, as Sweep takes them
  std::vector<std::string> expressions{};  ///< files that define user code
  bool no_code = false;                    ///< a requests file must not define any

  /// Adds the positional argument and the flags for models to a command.
  void add_to(Command command);
};

/// Nodes of a model that no request covers: those of one type and reason.
struct NotCovered {
  std::string operation;
  std::vector<std::string> nodes;  ///< Their names.
  std::string reason;
};

/// Names of the nodes of a model that each request serves, by its key. Empty where no model is read, and nothing of a
/// copy between layouts.
class ModelNodes {
 public:
  void add(const Request& request, const std::vector<std::string>& nodes);
  bool empty() const { return nodes_.empty(); }
  const std::vector<std::string>& of(const Request& request) const;
  /// In few words: the first two, and how many more. Without `scope`, which all of them begin with.
  std::string text(const Request& request, std::string_view scope = {}) const;
  /// All of all requests.
  std::vector<std::string> names() const;

 private:
  struct Names {
    std::vector<std::string> in_order;
    std::set<std::string> seen;
  };

  std::map<std::string, Names> nodes_;
};

/// Prefix that all `names` share, to the end of a scope: "/network/" of "/network/stem/Conv" and "/network/head/Gemm".
/// Empty for fewer than two names.
std::string shared_scope(const std::vector<std::string>& names);

struct Workload {
  std::vector<tuner::Job> jobs;  ///< No two with one key.
  std::vector<NotCovered> not_covered;
  ModelNodes nodes;
};

/// Keys of `workload.jobs`, in their order.
std::vector<std::string> keys_of(const Workload& workload);

/// A line for each type and reason: "not covered: 2 x TopK ('best', 'worst'): ...".
std::string not_covered_text(const std::vector<NotCovered>& nodes);
Json not_covered_json(const std::vector<NotCovered>& nodes);

/// The expressions that `files` define; requests in them are passed over, so that what KILN_RECORD wrote will do.
/// Throws Error: parse_error with file and position, io_error.
Expressions read_expressions(const std::vector<std::string>& files);
/// Adds --expression to a command.
void add_expressions_to(Command command, std::vector<std::string>& files);

/// Throws Error: parse_error with file and position, io_error, invalid_argument (a flag that does not apply).
Workload read_workload(const Input& input);
/// A workload or, where the lines leave extents open and get no --sweep, these: commands speak of the open kernels of
/// all their sizes.
struct WorkloadOrLines {
  Workload workload;
  std::vector<std::string> open_lines;
};

/// Reads the input once. Throws as read_workload(), and for lines of both kinds.
WorkloadOrLines read_workload_or_lines(const Input& input);
/// The lines of a requests file, or the one request, that `kiln bundle --open` takes: without comments, as they are
/// written. Throws as read_workload(), and for a model or user code.
std::vector<std::string> read_open_lines(const Input& input);

}  // namespace kiln::cli
