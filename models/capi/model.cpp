// Whole models for C, over kiln/model.h and what capi/ makes the C API of layers with.
#include "kiln/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/c/model.h"
#include "kiln/generator/expression.h"
#include "kiln/graph/graph.h"
#include "tensor.h"

// Texts that C is given of the steps of a size.
struct StepTexts {
  std::vector<std::vector<int64_t>> extents;    // of the inputs
  std::vector<std::string> requests;            // of each step
  std::vector<std::vector<const char*>> nodes;  // of each step
};

struct kiln_model {
  std::shared_ptr<kiln::Context> context;  // outlives the model
  kiln::Model model;
  StepTexts texts;  // of the size in use
};

namespace kiln::capi {
namespace {

InputShapes shapes_of(const kiln_input_shape* given, size_t count, const char* function) {
  if (count > 0) require(given, function, "shapes");
  InputShapes shapes;
  for (size_t i = 0; i < count; ++i) {
    const std::string field = fmt::format("shapes[{}]", i);
    require(given[i].name, function, field + ".name");
    if (given[i].rank > graph::most_dimensions) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}.rank is {}", function, field, given[i].rank),
                  fmt::format("give up to {}", graph::most_dimensions));
    }
    if (given[i].rank > 0) require(given[i].extents, function, field + ".extents");
    const std::vector<int64_t> extents(given[i].extents, given[i].extents + given[i].rank);
    if (shapes.try_emplace(given[i].name, extents).second) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}: '{}' is given twice", function, field, given[i].name));
  }
  return shapes;
}

ModelOptions options_of(const kiln_model_options* given) {
  const char* const function = "kiln_model_create";
  const kiln_model_options c = read(given, kiln_model_options_default(), function);
  ModelOptions options;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.fuse = flag(c.fuse, function, "fuse");
  options.use_graph = flag(c.use_graph, function, "use_graph");
  options.arithmetic.tf32 = flag(c.tf32, function, "tf32");
  options.arithmetic.fast = flag(c.fast, function, "fast");
  options.arithmetic.deterministic = flag(c.deterministic, function, "deterministic");
  require_zero(c.reserved, function, "reserved");
  if (c.batch < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: batch is {}", function, c.batch),
                "give 1 or more, or 0 for the model's own");
  }
  if (c.batch > 0) options.batch = c.batch;
  options.shapes = shapes_of(c.shapes, c.shape_count, function);
  options.kept_sizes = c.kept_sizes;
  options.kept_bytes = c.kept_bytes;
  if (c.kept_bytes < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: kept_bytes is {}", function, c.kept_bytes),
                "give 0 or more");
  }
  if (c.layout < KILN_LAYOUT_AUTO || c.layout > KILN_LAYOUT_NHWC) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: layout is {}", function, c.layout),
                "use KILN_LAYOUT_AUTO, KILN_LAYOUT_NCHW or KILN_LAYOUT_NHWC");
  }
  static_assert(KILN_LAYOUT_AUTO == static_cast<int>(ModelLayout::automatic) &&
                KILN_LAYOUT_NCHW == static_cast<int>(ModelLayout::channels_first) &&
                KILN_LAYOUT_NHWC == static_cast<int>(ModelLayout::channels_last));
  options.layout = static_cast<ModelLayout>(c.layout);
  if (c.dtype == KILN_DTYPE_OF_MODEL) return options;
  options.dtype = static_cast<DType>(c.dtype);
  if (!DTypes::floating_or_fp8.holds(*options.dtype)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: dtype is {}", function, c.dtype),
                fmt::format("use KILN_DTYPE_OF_MODEL, or one of {}", constants_of(DTypes::floating_or_fp8)));
  }
  return options;
}

// Element `index` of what a model has `what` of.
template <class Element>
const Element& element(const std::vector<Element>& elements, size_t index, const char* function, const char* what) {
  if (index < elements.size()) return elements[index];
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: there is no {} {}: the model has {}", function, what, index, elements.size()),
              fmt::format("kiln_model_info has {}_count", what));
}

void write_tensor(const ModelTensor& tensor, const char* function, kiln_model_tensor_info* info) {
  kiln_model_tensor_info value = kiln_model_tensor_info_default();
  value.dtype = static_cast<kiln_dtype>(tensor.dtype);
  value.name = tensor.name.c_str();
  value.type = tensor.type.c_str();
  value.extents = tensor.extents.data();
  value.rank = tensor.extents.size();
  write(info, value, function);
}

// Makes the texts of the model's size, if it is another one.
void take_texts(kiln_model& model) {
  const std::vector<ModelTensor>& inputs = model.model.inputs();
  const auto is_same = [](const ModelTensor& input, const std::vector<int64_t>& extents) {
    return input.extents == extents;
  };
  const std::vector<std::vector<int64_t>>& known = model.texts.extents;
  const bool is_known = std::equal(inputs.begin(), inputs.end(), known.begin(), known.end(), is_same);
  if (is_known && model.texts.requests.size() == model.model.steps().size()) return;
  model.texts = {};
  for (const ModelTensor& input : inputs) model.texts.extents.push_back(input.extents);
  for (const ModelStep& step : model.model.steps()) {
    model.texts.requests.push_back(step.request.key());
    std::vector<const char*>& nodes = model.texts.nodes.emplace_back();
    for (const std::string& node : step.nodes) nodes.push_back(node.c_str());
  }
}

std::vector<NamedTensor> tensors_of(const kiln_named_tensor* given, size_t count, std::string_view name) {
  const char* const function = "kiln_model_run";
  if (count > 0) require(given, function, name);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    require(given[i].name, function, fmt::format("{}[{}].name", name, i));
    tensors.push_back({given[i].name, tensor_of(given[i].tensor, function, fmt::format("{}[{}].tensor", name, i))});
  }
  return tensors;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_model_create(kiln_context* context, const char* path, const kiln_model_options* options,
                              kiln_model** model) {
  return guarded([&] {
    require(context, "kiln_model_create", "context");
    require(path, "kiln_model_create", "path");
    require(model, "kiln_model_create", "model");
    auto made = std::make_unique<kiln_model>(
        kiln_model{context->context, kiln::Model(*context->context, path, options_of(options)), {}});
    take_texts(*made);
    *model = made.release();
  });
}

void kiln_model_destroy(kiln_model* model) {
  destroy(model);
}

kiln_status kiln_model_set_batch(kiln_model* model, int64_t batch) {
  return guarded([&] {
    require(model, "kiln_model_set_batch", "model");
    model->model.set_batch(batch);
    take_texts(*model);
  });
}

kiln_status kiln_model_set_shapes(kiln_model* model, const kiln_input_shape* shapes, size_t count) {
  return guarded([&] {
    require(model, "kiln_model_set_shapes", "model");
    model->model.set_shapes(shapes_of(shapes, count, "kiln_model_set_shapes"));
    take_texts(*model);
  });
}

kiln_status kiln_model_get_info(const kiln_model* model, kiln_model_info* info) {
  return guarded([&] {
    require(model, "kiln_model_get_info", "model");
    const kiln::ModelMemory& memory = model->model.memory();
    kiln_model_info value = kiln_model_info_default();
    value.has_open_batch = model->model.has_open_batch() ? 1 : 0;
    value.batch = model->model.batch();
    value.input_count = model->model.inputs().size();
    value.output_count = model->model.outputs().size();
    value.step_count = model->model.steps().size();
    value.weight_bytes = memory.weights;
    value.arena_bytes = memory.arena;
    value.least_arena_bytes = memory.least_arena;
    value.unshared_bytes = memory.unshared;
    const kiln::ModelGraphs& graphs = model->model.graphs();
    value.graph_count = graphs.kept;
    value.no_graph_because = graphs.unused_because.empty() ? "" : graphs.unused_because.c_str();
    value.has_open_extents = model->model.has_open_extents() ? 1 : 0;
    value.size_count = model->model.sizes();
    const kiln::ModelCost& cost = model->model.cost();
    value.ready_seconds = cost.seconds;
    value.compile_seconds = cost.compile_seconds;
    value.compiled = cost.compiled;
    write(info, value, "kiln_model_get_info");
  });
}

kiln_status kiln_model_get_input(const kiln_model* model, size_t index, kiln_model_tensor_info* info) {
  return guarded([&] {
    const char* const function = "kiln_model_get_input";
    require(model, function, "model");
    write_tensor(element(model->model.inputs(), index, function, "input"), function, info);
  });
}

kiln_status kiln_model_get_output(const kiln_model* model, size_t index, kiln_model_tensor_info* info) {
  return guarded([&] {
    const char* const function = "kiln_model_get_output";
    require(model, function, "model");
    write_tensor(element(model->model.outputs(), index, function, "output"), function, info);
  });
}

kiln_status kiln_model_get_declared_input(const kiln_model* model, size_t index, kiln_model_tensor_info* info) {
  return guarded([&] {
    const char* const function = "kiln_model_get_declared_input";
    require(model, function, "model");
    write_tensor(element(model->model.declared_inputs(), index, function, "input"), function, info);
  });
}

kiln_status kiln_model_get_step(const kiln_model* model, size_t index, kiln_model_step_info* info) {
  return guarded([&] {
    const char* const function = "kiln_model_get_step";
    require(model, function, "model");
    const kiln::ModelStep& step = element(model->model.steps(), index, function, "step");
    kiln_model_step_info value = kiln_model_step_info_default();
    const StepTexts& texts = model->texts;
    value.request = texts.requests[index].c_str();
    value.variant = step.variant.c_str();
    value.source = step.source.c_str();
    value.nodes = texts.nodes[index].data();
    value.node_count = texts.nodes[index].size();
    write(info, value, function);
  });
}

kiln_status kiln_model_requests(const kiln_model* model, char** requests) {
  return guarded([&] {
    require(model, "kiln_model_requests", "model");
    require(requests, "kiln_model_requests", "requests");
    std::string text;
    std::set<std::string> known;
    const auto add = [&](const std::string& line) {
      if (known.insert(line).second) text += line + "\n";
    };
    for (const kiln::ModelStep& step : model->model.steps()) {
      const kiln::Expression* const code = step.request.user_code.expression();
      if (code != nullptr) add(kiln::print_definition(code->digest(), *code));
      add(step.request.key());
    }
    *requests = copy_of(text);
  });
}

kiln_status kiln_model_run(kiln_model* model, kiln_stream stream, const kiln_named_tensor* inputs, size_t input_count,
                           const kiln_named_tensor* outputs, size_t output_count) {
  return guarded([&] {
    require(model, "kiln_model_run", "model");
    const std::vector<kiln::NamedTensor> given = tensors_of(inputs, input_count, "inputs"),
                                         written = tensors_of(outputs, output_count, "outputs");
    model->model.run(given, written, stream);
    take_texts(*model);
  });
}
