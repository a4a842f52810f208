// kiln._kiln_model: whole models for kiln.onnx. A module of its own, so that `import kiln` loads no ONNX.
#include "kiln/model.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "extension_interface.h"
#include "kiln/base/error.h"
#include "kiln/generator/expression.h"

namespace kiln::python {
namespace {

namespace nb = nanobind;

// A Model in two steps: made of what it is to be, then loaded by its first piece of work.
class PythonModel {
 public:
  // `context`: the Python object that the model must not outlive. `limits`: sizes and bytes that are kept. `flags`: the
  // options that hold, by their names.
  PythonModel(nb::object context, std::string path, std::optional<int64_t> batch, InputShapes shapes,
              std::optional<std::string> dtype, std::string layout, std::pair<size_t, int64_t> limits,
              std::set<std::string> flags)
      : context_(std::move(context)),
        load_([this, path = std::move(path), batch, shapes = std::move(shapes), dtype = std::move(dtype),
               layout = std::move(layout), limits,
               flags = std::move(flags)](Context& device, std::span<const NamedTensor>, Stream) {
          ModelOptions options;
          options.batch = batch;
          options.shapes = shapes;
          options.kept_sizes = limits.first;
          options.kept_bytes = limits.second;
          options.dynamic_batch = flags.contains("dynamic_batch");
          options.fuse = flags.contains("fuse");
          options.layout = layout_of(layout);
          options.use_graph = flags.contains("use_graph");
          options.arithmetic = {flags.contains("tf32"), flags.contains("fast"), flags.contains("deterministic")};
          if (dtype) options.dtype = storage(*dtype);
          model_.emplace(device, path, options);
        }),
        set_batch_([this](Context&, std::span<const NamedTensor>, Stream) { model_->set_batch(wanted_); }),
        set_shapes_([this](Context&, std::span<const NamedTensor>, Stream) { model_->set_shapes(wanted_shapes_); }),
        run_([this](Context&, std::span<const NamedTensor> tensors, Stream stream) { run(tensors, stream); }) {}
  PythonModel(const PythonModel&) = delete;  // the works hold its address
  PythonModel& operator=(const PythonModel&) = delete;

  nb::capsule load() const { return {&load_, name_of_work}; }
  nb::capsule set_batch(int64_t batch) {
    wanted_ = batch;
    return {&set_batch_, name_of_work};
  }
  nb::capsule set_shapes(InputShapes shapes) {
    wanted_shapes_ = std::move(shapes);
    return {&set_shapes_, name_of_work};
  }
  nb::capsule run() const { return {&run_, name_of_work}; }
  const Model& get() const { return *model_; }

 private:
  static DType storage(const std::string& name) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (dtype && DTypes::floating_or_fp8.holds(*dtype)) return *dtype;
    throw Error(ErrorCode::invalid_argument, "dtype is '" + name + "', which is no floating-point type of Kiln's",
                "give " + to_string(DTypes::floating_or_fp8));
  }

  static ModelLayout layout_of(const std::string& word) {
    if (const std::optional<ModelLayout> layout = parse_model_layout(word)) return *layout;
    throw Error(ErrorCode::invalid_argument, "layout is '" + word + "', which Kiln does not know",
                "give auto, nchw or nhwc");
  }

  void run(std::span<const NamedTensor> tensors, Stream stream) {
    std::vector<NamedTensor> inputs, outputs;
    for (const NamedTensor& tensor : tensors) {
      const bool is_output =
          std::ranges::any_of(model_->outputs(), [&](const auto& each) { return each.name == tensor.name; });
      (is_output ? outputs : inputs).push_back(tensor);
    }
    model_->run(inputs, outputs, stream);
  }

  nb::object context_;
  std::optional<Model> model_;
  int64_t wanted_ = 1;
  InputShapes wanted_shapes_;
  Work load_, set_batch_, set_shapes_, run_;
};

// (name, type, dtype, extents) of each.
nb::list tensors_of(const std::vector<ModelTensor>& tensors) {
  nb::list list;
  for (const ModelTensor& tensor : tensors) {
    nb::list extents;
    for (const int64_t extent : tensor.extents) extents.append(extent);
    list.append(nb::make_tuple(tensor.name, tensor.type, std::string(to_string(tensor.dtype)), nb::tuple(extents)));
  }
  return list;
}

// (request, definition of its user code, variant, source, nodes) of each.
nb::list steps_of(const PythonModel& model) {
  nb::list list;
  for (const ModelStep& step : model.get().steps()) {
    const kiln::Expression* const code = step.request.user_code.expression();
    const std::string definition = code == nullptr ? std::string() : print_definition(code->digest(), *code);
    nb::list nodes;
    for (const std::string& node : step.nodes) nodes.append(node);
    list.append(nb::make_tuple(step.request.key(), definition, step.variant, step.source, nb::tuple(nodes)));
  }
  return list;
}

nb::tuple memory_of(const PythonModel& model) {
  const ModelMemory& use = model.get().memory();
  return nb::make_tuple(use.weights, use.arena, use.least_arena, use.unshared);
}

nb::tuple cost_of(const PythonModel& model) {
  const ModelCost& cost = model.get().cost();
  return nb::make_tuple(cost.seconds, cost.compiled, cost.compile_seconds);
}

nb::tuple graphs_of(const PythonModel& model) {
  const ModelGraphs& graphs = model.get().graphs();
  return nb::make_tuple(graphs.kept, graphs.unused_because);
}

void bind(nb::module_& module) {
  constexpr const char* tensors = "list[tuple[str, str, str, tuple[int, ...]]]";
  const std::string inputs = std::string("def inputs(self) -> ") + tensors;
  const std::string declared = std::string("def declared_inputs(self) -> ") + tensors;
  const std::string outputs = std::string("def outputs(self) -> ") + tensors;
  nb::class_<PythonModel>(module, "Model")
      .def(nb::init<nb::object, std::string, std::optional<int64_t>, InputShapes, std::optional<std::string>,
                    std::string, std::pair<size_t, int64_t>, std::set<std::string>>(),
           nb::arg("context"), nb::arg("path"), nb::arg("batch").none(), nb::arg("shapes"), nb::arg("dtype").none(),
           nb::arg("layout"), nb::arg("limits"), nb::arg("flags"))
      .def("load", &PythonModel::load, nb::sig("def load(self) -> object"))
      .def("set_batch", &PythonModel::set_batch, nb::arg("batch"), nb::sig("def set_batch(self, batch: int) -> object"))
      .def("batch", [](const PythonModel& model) { return model.get().batch(); })
      .def("set_shapes", &PythonModel::set_shapes, nb::arg("shapes"),
           nb::sig("def set_shapes(self, shapes: Mapping[str, Sequence[int]]) -> object"))
      .def("has_open_batch", [](const PythonModel& model) { return model.get().has_open_batch(); })
      .def("has_open_extents", [](const PythonModel& model) { return model.get().has_open_extents(); })
      .def("sizes", [](const PythonModel& model) { return model.get().sizes(); })
      .def(
          "declared_inputs", [](const PythonModel& model) { return tensors_of(model.get().declared_inputs()); },
          nb::sig(declared.c_str()))
      .def("cost", &cost_of, nb::sig("def cost(self) -> tuple[float, int, float]"))
      .def("run", nb::overload_cast<>(&PythonModel::run, nb::const_), nb::sig("def run(self) -> object"))
      .def(
          "inputs", [](const PythonModel& model) { return tensors_of(model.get().inputs()); }, nb::sig(inputs.c_str()))
      .def(
          "outputs", [](const PythonModel& model) { return tensors_of(model.get().outputs()); },
          nb::sig(outputs.c_str()))
      .def("steps", &steps_of, nb::sig("def steps(self) -> list[tuple[str, str, str, str, tuple[str, ...]]]"))
      .def("memory", &memory_of, nb::sig("def memory(self) -> tuple[int, int, int, int]"))
      .def("graphs", &graphs_of, nb::sig("def graphs(self) -> tuple[int, str]"));
}

}  // namespace
}  // namespace kiln::python

NB_MODULE(_kiln_model, module) {
  nanobind::set_leak_warnings(false);  // a program may end with a Model in a global
  kiln::python::bind(module);
}
