// kiln infer: run a whole model on arrays in files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/context.h"
#include "kiln/frontends/onnx.h"
#include "kiln/models/host_run.h"
#include "layer_table.h"
#include "model_flags.h"
#include "npy.h"
#include "output.h"
#include "shapes.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct InferOptions {
  std::string model;
  std::vector<std::string> inputs, outputs;  // [NAME=]FILE
  ModelFlags flags;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs, bundles;
  Output output;
};

/// A file that belongs to an input or output of the model.
struct Binding {
  std::string name;  // empty: the next one
  std::string path;
};

Binding parse_binding(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The path for each of the model's `names`: bindings with names go to these, the others to the rest in order.
std::vector<std::string> paths_for(const std::vector<std::string>& names, const std::vector<std::string>& given,
                                   const char* what) {
  std::vector<std::string> paths(names.size());
  const auto describe = [&] {
    return fmt::format("the model has {} {}s: {}", names.size(), what, fmt::join(names, ", "));
  };
  for (const std::string& text : given) {
    const Binding binding = parse_binding(text);
    size_t i = 0;
    if (binding.name.empty()) {
      i = static_cast<size_t>(std::find(paths.begin(), paths.end(), "") - paths.begin());
    } else {
      i = static_cast<size_t>(std::find(names.begin(), names.end(), binding.name) - names.begin());
    }
    if (i == names.size()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--{} {} fits no {} of the model", what, text, what),
                  describe());
    }
    if (!paths[i].empty()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--{} {}: '{}' is given twice", what, text, names[i]));
    }
    paths[i] = binding.path;
  }
  return paths;
}

template <class Port>
std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

std::string print(const ModelTensor& tensor) {
  const std::string extents =
      tensor.extents.empty() ? "one element" : fmt::format("{}", fmt::join(tensor.extents, "x"));
  const std::string stored = fmt::format("{}", to_string(tensor.dtype));
  return fmt::format("{} {} (on the device {})", tensor.type, extents, stored);
}

Json json_of(const std::vector<ModelTensor>& tensors) {
  Json list = Json::array();
  for (const ModelTensor& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"type", tensor.type},
                    {"dtype", to_string(tensor.dtype)},
                    {"extents", tensor.extents}});
  }
  return list;
}

std::string memory_text(int64_t bytes) {
  constexpr double mib = 1024.0 * 1024.0;
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / mib);
}

std::vector<std::string> keys_of(const Model& model) {
  std::vector<std::string> keys;
  for (const ModelStep& step : model.steps()) keys.push_back(step.request.key());
  return keys;
}

void print_text(const InferOptions& options, const Model& model) {
  std::vector<std::string> names;
  for (const ModelStep& step : model.steps()) names.insert(names.end(), step.nodes.begin(), step.nodes.end());
  const std::string scope = shared_scope(names);
  Table steps({"call", "variant", "choice", nodes_heading(scope)});
  for (const ModelStep& step : model.steps()) {
    std::vector<std::string> nodes = step.nodes;
    for (std::string& name : nodes) name.erase(0, scope.size());
    steps.add({summary(step.request), step.variant, step.source,
               nodes.empty() ? "(copy)" : fmt::format("{}", fmt::join(nodes, ", "))});
  }
  fmt::print("{}\n", options.output.print(steps));
  for (const ModelTensor& tensor : model.inputs())
    fmt::print("input  {}: {}\n", printable_line(tensor.name), print(tensor));
  for (const ModelTensor& tensor : model.outputs())
    fmt::print("output {}: {}\n", printable_line(tensor.name), print(tensor));
  const ModelMemory& use = model.memory();
  fmt::print("memory: {} of weights, {} in between ({} if nothing were shared)\n", memory_text(use.weights),
             memory_text(use.arena), memory_text(use.unshared));
  const ModelCost& cost = model.cost();
  fmt::print("this size was ready after {:.0f} ms of the host's time, ", 1e3 * cost.seconds);
  if (cost.compiled == 0) {
    fmt::print("without a compile\n");
  } else {
    fmt::print("{} kernels compiled in {:.0f} ms\n", cost.compiled, 1e3 * cost.compile_seconds);
  }
}

void print_as_json(const Context& context, const Model& model) {
  Json steps = Json::array();
  for (const ModelStep& step : model.steps()) {
    steps.push_back(
        {{"request", step.request.key()}, {"variant", step.variant}, {"choice", step.source}, {"nodes", step.nodes}});
  }
  const ModelMemory& use = model.memory();
  const ModelCost& cost = model.cost();
  print_json(
      {{"device", context.device_id()},
       {"inputs", json_of(model.inputs())},
       {"outputs", json_of(model.outputs())},
       {"steps", steps},
       {"memory",
        {{"weights", use.weights}, {"arena", use.arena}, {"least_arena", use.least_arena}, {"unshared", use.unshared}}},
       {"cost", {{"seconds", cost.seconds}, {"compiled", cost.compiled}, {"compile_seconds", cost.compile_seconds}}}});
}

/// The arrays that are given: one for each input.
std::vector<models::HostArray> read_arrays(const OnnxInputs& inputs, const std::vector<std::string>& given) {
  std::vector<models::HostArray> arrays;
  const std::vector<std::string> paths = paths_for(names_of(inputs.all()), given, "input");
  for (size_t i = 0; i < paths.size(); ++i) {
    const OnnxInput& input = inputs.all()[i];
    if (paths[i].empty()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("input '{}' is not given", input.name),
                  fmt::format("it is {}, {}: --input {}=FILE.npy", OnnxInputs::text_of(input), input.type, input.name));
    }
    arrays.push_back(read_npy(paths[i]));
  }
  return arrays;
}

/// How the model is loaded: for the extents of the arrays, where its file leaves any open, and for those of --shape.
ModelOptions options_for(const InferOptions& options, const OnnxFile& file,
                         const std::vector<models::HostArray>& arrays) {
  ModelOptions how = options.flags.options();
  const OnnxInputs inputs = file.inputs(how.dtype);
  const std::vector<InputShapes> sizes = parse_shapes(options.flags.shapes, inputs);
  if (sizes.size() > 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--shape names {} sizes, and a run has one", sizes.size()));
  }
  InputShapes shapes = sizes.front();
  const bool is_open = inputs.has_open_batch() || inputs.has_open_extents();
  for (size_t i = 0; is_open && i < arrays.size(); ++i) {
    const std::string& name = inputs.all()[i].name;
    const auto [place, is_new] = shapes.try_emplace(name, arrays[i].extents);
    if (is_new || place->second == arrays[i].extents) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--shape says {} of input '{}', and its file holds {}", fmt::join(place->second, "x"), name,
                            fmt::join(arrays[i].extents, "x")),
                "leave --shape out: inputs say their extents");
  }
  use_shapes(how, shapes, inputs);
  return how;
}

int infer(const InferOptions& options) {
  require_file(options.model, "give a model.onnx");
  ContextOptions settings = options.device.context_options();
  if (!options.database.empty()) settings.cache = options.database;
  settings.packs = options.packs;
  settings.bundles = options.bundles;
  require_packs(options.packs);
  require_bundles(options.bundles);
  require_database(options.database);
  Context context(settings);
  const bool is_run = !options.inputs.empty() || !options.outputs.empty();
  std::vector<models::HostArray> arrays;
  Model model = [&] {
    const OnnxFile file(options.model);
    if (is_run) arrays = read_arrays(file.inputs(), options.inputs);
    return Model(context, options.model, options_for(options, file, arrays));
  }();
  require_database(options.database, keys_of(model));
  const std::vector<std::string> outputs = paths_for(names_of(model.outputs()), options.outputs, "output");
  if (is_run) {
    const std::vector<models::HostArray> results = models::run_on_host(context, model, arrays);
    for (size_t j = 0; j < outputs.size(); ++j) {
      if (!outputs[j].empty()) write_npy(outputs[j], results[j]);
    }
  }
  if (options.output.json) {
    print_as_json(context, model);
  } else {
    print_text(options, model);
  }
  return success;
}

}  // namespace

void add_infer(Command app, int& exit_code) {
  auto options = std::make_shared<InferOptions>();
  const Command command = app.add_command("infer", "run a whole model on arrays in files");
  command.add_option("model", options->model, "an ONNX model").required();
  command.add_option("--input", options->inputs, "[NAME=]FILE.npy: an input; without a name, the next one").one_value();
  command.add_option("--output", options->outputs, "[NAME=]FILE.npy: where to write an output").one_value();
  options->flags.add_to(command);
  options->device.add_to(command);
  add_database_option(command, options->database);
  command.add_option("--pack", options->packs, "packs to use beside the database");
  command.add_option("--bundle", options->bundles, "bundles of compiled variants to use");
  options->output.add_to(command);
  command.footer("Example: kiln infer examples/models/squeezenet1_1.onnx --input x.npy --output y.npy");
  command.on_chosen([options, &exit_code] { exit_code = infer(*options); });
}

}  // namespace kiln::cli
