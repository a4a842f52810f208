#include "input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "checks.h"
#include "command_line.h"
#include "database.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/generator/no_code.h"
#include "kiln/generator/operation.h"
#include "kiln/models/lower.h"
#include "kiln/runtime/open_line_kernels.h"
#include "shapes.h"
#include "sweep.h"

namespace kiln::cli {
namespace {

/// Puts a workload together, in the order in which its requests and nodes come first.
class Collection {
 public:
  void add(const RequestLine& line) {
    const auto [place, is_new] = jobs_.try_emplace(line.request.key(), workload_.jobs.size());
    if (is_new) workload_.jobs.push_back({line.request, 0});
    workload_.jobs[place->second].count += line.count;
  }

  void add_nodes(const Request& request, const std::vector<std::string>& nodes) { workload_.nodes.add(request, nodes); }

  void add(const UncoveredNode& node) {
    if (!uncovered_.insert({node.name, node.operation, node.reason}).second) return;  // of another size
    const auto [place, is_new] = reasons_.try_emplace({node.operation, node.reason}, workload_.not_covered.size());
    if (is_new) workload_.not_covered.push_back({node.operation, {}, node.reason});
    workload_.not_covered[place->second].nodes.push_back(node.name);
  }

  Workload take() { return std::move(workload_); }

 private:
  Workload workload_;
  std::unordered_map<std::string, size_t> jobs_;                   // by their keys
  std::map<std::pair<std::string, std::string>, size_t> reasons_;  // by operation and reason
  std::set<std::tuple<std::string, std::string, std::string>> uncovered_;
};

/// Requests of the model that `kiln infer` runs, of all sizes that --shape names.
Workload from_model(const Input& input) {
  const OnnxFile file(input.text);
  const ModelOptions usual = input.model.options();
  const OnnxInputs inputs = file.inputs(usual.dtype);
  const graph::Cost cost = models::estimated_cost();  // of one size helps the next
  Collection collection;
  for (const InputShapes& shapes : parse_shapes(input.model.shapes, inputs)) {
    ModelOptions options = usual;
    use_shapes(options, shapes, inputs);
    const models::Lowered lowered = models::lower(file, options, cost);
    for (const graph::Step& step : lowered.schedule.steps) {
      collection.add({step.request, 1});
      collection.add_nodes(step.request, step.origins);
    }
    for (const UncoveredNode& node : lowered.model.uncovered) collection.add(node);
  }
  return collection.take();
}

/// The text of requests, and what messages call it.
struct RequestsText {
  std::string name, text;
};

Workload from_requests(const RequestsText& requests, const Input& input) {
  const Sweep sweep(input.sweeps);
  Expressions expressions = read_expressions(input.expressions);
  Collection collection;
  try {
    if (input.no_code) {
      require_no_code(requests.text,
                      "leave out --no-code if you would run its author's code, or take the definition into a file of "
                      "your own for --expression");
    }
    for (const RequestLine& line : sweep.requests_of(requests.text, expressions)) collection.add(line);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", requests.name, error.message()), error.hint());
  }
  Workload workload = collection.take();
  if (workload.jobs.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} holds no request", requests.name));
  return workload;
}

constexpr std::string_view what_to_give = "give a model.onnx, a requests file, or one request in quotes";

// Kind of a file that is no text, by its first bytes, as advice.
std::string_view kind_of_file(std::string_view bytes) {
  if (bytes.starts_with("SQLite format 3")) return "it is a tuning database: --db takes it, `kiln cache list` shows it";
  return what_to_give;
}

// Requests are plain text; what has other bytes is not, and a message about its columns would be of no use.
void require_text(const std::string& path, std::string_view text) {
  const auto found = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
  if (found == text.end()) return;
  throw Error(
      ErrorCode::parse_error,
      fmt::format("{} is not text: byte {} is {:#04x}", path, found - text.begin(), static_cast<unsigned char>(*found)),
      std::string(kind_of_file(text)));
}

std::string read_file(const std::string& path) {
  require_file(path);
  std::ifstream stream(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad() || !stream.is_open()) {
    throw Error(ErrorCode::io_error, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  require_text(path, text);
  return text;
}

// The lines of an input that is no model.
RequestsText read_requests(const Input& input) {
  if (input.model.any()) {
    throw Error(ErrorCode::invalid_argument,
                "--dtype, --layout, --batch, --shape, --no-fuse and --arithmetic apply to ONNX models",
                "a request says these things itself");
  }
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(input.text, ignored);
  const bool is_request = input.text.find(' ') != std::string::npos || find_operation(input.text) != nullptr;
  if (!is_there && is_request) return {"request", input.text};
  require_file(input.text, what_to_give);
  return {input.text, read_file(input.text)};
}

bool has_open_line(const std::string& text) {
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line);) {
    if (is_open_line(line.substr(0, line.find('#')))) return true;
  }
  return false;
}

// The lines that leave extents open; empty where all have theirs.
std::vector<std::string> lines_of_all_sizes(const RequestsText& requests) {
  if (!has_open_line(requests.text)) return {};
  try {
    require_no_code(requests.text, "give layers with user code at the sizes that they have");
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", requests.name, error.message()), error.hint());
  }
  std::vector<std::string> lines = open_lines_in(requests.text);
  const auto closed = std::ranges::find_if_not(lines, is_open_line);
  if (closed == lines.end()) return lines;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has requests with open extents and without: '{}'", requests.name, *closed),
              "put them into two files, or name the extents, as in x=f32:?nx?c, and give --sweep n=1,8 --sweep c=64");
}

}  // namespace

Expressions read_expressions(const std::vector<std::string>& files) {
  Expressions expressions;
  for (const std::string& file : files) {
    try {
      (void)parse_requests(read_file(file), expressions);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", file, error.message()), error.hint());
    }
  }
  return expressions;
}

void add_expressions_to(Command command, std::vector<std::string>& files) {
  command
      .add_option("--expression", files,
                  "file that defines user code for epilogue=user:NAME; requests in it are ignored")
      .one_value();
}

void Input::add_to(Command command) {
  command.add_option("input", text, "model.onnx, a requests file, or one request in quotes").required();
  model.add_to(command);
  command
      .add_option("--sweep", sweeps,
                  "NAME=NUMBERS: a request for each number of its extent ?NAME, as in h=14,28 or h=14..56*2")
      .one_value();
  add_expressions_to(command, expressions);
  command.add_flag(
      "--no-code", no_code,
      "refuse a requests file that defines user code, such as a stranger's; files of --expression are trusted");
}

void ModelNodes::add(const Request& request, const std::vector<std::string>& nodes) {
  Names& known = nodes_[request.key()];
  for (const std::string& node : nodes) {
    if (known.seen.insert(node).second) known.in_order.push_back(node);
  }
}

const std::vector<std::string>& ModelNodes::of(const Request& request) const {
  static const std::vector<std::string> none;
  const auto found = nodes_.find(request.key());
  return found == nodes_.end() ? none : found->second.in_order;
}

std::string ModelNodes::text(const Request& request, std::string_view scope) const {
  constexpr size_t most_names = 2;
  const std::vector<std::string>& nodes = of(request);
  if (nodes.empty()) return "(copy)";
  std::vector<std::string> first(nodes.begin(), nodes.begin() + std::min(most_names, nodes.size()));
  for (std::string& name : first) name.erase(0, scope.size());
  const size_t more = nodes.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

std::vector<std::string> ModelNodes::names() const {
  std::vector<std::string> all;
  for (const auto& [request, names] : nodes_) all.insert(all.end(), names.in_order.begin(), names.in_order.end());
  return all;
}

std::string shared_scope(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string_view shared = names.front();
  for (const std::string_view name : names) {
    const auto difference = std::mismatch(shared.begin(), shared.end(), name.begin(), name.end()).first;
    // Something has to be left of each name.
    const auto most = std::min(static_cast<size_t>(difference - shared.begin()), name.size() - (name.empty() ? 0 : 1));
    shared = shared.substr(0, most);
  }
  return std::string(shared.substr(0, shared.rfind('/') + 1));  // npos + 1 is 0
}

std::vector<std::string> keys_of(const Workload& workload) {
  std::vector<std::string> keys;
  for (const tuner::Job& job : workload.jobs) keys.push_back(job.request.key());
  return keys;
}

std::string not_covered_text(const std::vector<NotCovered>& nodes) {
  std::string text;
  for (const NotCovered& node : nodes) {
    std::vector<std::string> names;
    for (const std::string& name : node.nodes) names.push_back(printable_name(name));
    text += fmt::format("not covered: {} x {} ('{}'): {}\n", node.nodes.size(), printable_name(node.operation),
                        fmt::join(names, "', '"), printable_line(node.reason));
  }
  return text;
}

Json not_covered_json(const std::vector<NotCovered>& nodes) {
  Json json = Json::array();
  for (const NotCovered& node : nodes) {
    json.push_back(
        {{"operation", node.operation}, {"count", node.nodes.size()}, {"nodes", node.nodes}, {"reason", node.reason}});
  }
  return json;
}

Workload read_workload(const Input& input) {
  if (input.text.ends_with(".onnx") && !input.sweeps.empty()) {
    throw Error(ErrorCode::invalid_argument, "--sweep is for requests, not for a model",
                "--shape gives a model's inputs several shapes");
  }
  if (!input.text.ends_with(".onnx")) return from_requests(read_requests(input), input);
  require_file(input.text, what_to_give);
  return from_model(input);
}

WorkloadOrLines read_workload_or_lines(const Input& input) {
  const bool may_leave_open = !input.text.ends_with(".onnx") && input.sweeps.empty() && input.expressions.empty();
  if (!may_leave_open) return {read_workload(input), {}};
  const RequestsText requests = read_requests(input);  // once: it may be a pipe
  std::vector<std::string> lines = lines_of_all_sizes(requests);
  if (lines.empty()) return {from_requests(requests, input), {}};
  return {{}, std::move(lines)};
}

std::vector<std::string> read_open_lines(const Input& input) {
  if (input.text.ends_with(".onnx")) {
    throw Error(ErrorCode::invalid_argument, "--open takes requests, not a model",
                "bundle the layers of a model at the sizes that it has, without --open");
  }
  if (!input.sweeps.empty()) {
    throw Error(ErrorCode::invalid_argument, "--open takes all sizes, and --sweep some", "leave one of them out");
  }
  constexpr auto how_with_code = "bundle layers with user code at the sizes that they have, without --open";
  if (!input.expressions.empty())
    throw Error(ErrorCode::invalid_argument, "--open takes no user code: leave out --expression", how_with_code);
  const RequestsText requests = read_requests(input);
  require_no_code(requests.text, how_with_code);
  std::vector<std::string> lines = open_lines_in(requests.text);
  if (lines.empty()) throw Error(ErrorCode::invalid_argument, fmt::format("{} holds no request", requests.name));
  return lines;
}

}  // namespace kiln::cli
