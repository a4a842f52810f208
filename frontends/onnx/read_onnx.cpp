#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "kiln/base/as_error.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/frontends/onnx.h"
#include "onnx/host_nodes.h"
#include "onnx/inputs.h"
#include "onnx/load.h"
#include "onnx/node.h"
#include "onnx/output_types.h"
#include "onnx/readers.h"

namespace kiln {
namespace onnx_frontend {
namespace {

using NodeReader = void (*)(Node&);

/// Nodes that one function reads.
struct Family {
  NodeReader read;
  std::vector<std::string> nodes;
};

void read_constant(Node& node) {
  for (const auto& attribute : node.proto().attribute()) {
    if (attribute.name() == "value" && attribute.has_t()) return node.give_tensor(attribute.t());
    const int64_t integers = attribute.ints_size(), reals = attribute.floats_size();
    using onnx::TensorProto;
    if (attribute.name() == "value_int") {
      return node.give_host({TensorProto::INT64, {}, HostTensor::Integers{attribute.i()}});
    }
    if (attribute.name() == "value_float") {
      return node.give_host({TensorProto::FLOAT, {}, HostTensor::Reals{static_cast<double>(attribute.f())}});
    }
    if (attribute.name() == "value_ints") {
      return node.give_host(
          {TensorProto::INT64, {integers}, HostTensor::Integers(attribute.ints().begin(), attribute.ints().end())});
    }
    if (attribute.name() == "value_floats") {
      return node.give_host(
          {TensorProto::FLOAT, {reals}, HostTensor::Reals(attribute.floats().begin(), attribute.floats().end())});
    }
  }
  refuse("its value is no tensor of numbers");
}

/// Layers, products and reductions.
std::vector<Family> layer_families() {
  return {
      {read_constant, {"Constant"}},
      {read_constant_of_shape, {"ConstantOfShape"}},
      {read_conv, {"Conv"}},
      {read_conv_integer, {"ConvInteger"}},
      {read_qlinear_conv, {"QLinearConv"}},
      {read_conv_transpose, {"ConvTranspose"}},
      {read_col2im, {"Col2Im"}},
      {read_pool, {"MaxPool", "AveragePool"}},
      {read_global_pool, {"GlobalMaxPool", "GlobalAveragePool"}},
      {read_unpool, {"MaxUnpool"}},
      {read_softmax, {"Softmax", "LogSoftmax"}},
      {read_dropout, {"Dropout"}},
      {read_batch_norm, {"BatchNormalization"}},
      {read_instance_norm, {"InstanceNormalization"}},
      {read_group_norm, {"GroupNormalization"}},
      {read_layer_norm, {"LayerNormalization"}},
      {read_mean_variance_norm, {"MeanVarianceNormalization"}},
      {read_lp_norm, {"LpNormalization"}},
      {read_lrn, {"LRN"}},
      {read_gemm, {"Gemm"}},
      {read_matmul, {"MatMul"}},
      {read_matmul_integer, {"MatMulInteger"}},
      {read_qlinear_matmul, {"QLinearMatMul"}},
      {read_reduce,
       {"ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare",
        "ReduceLogSum", "ReduceLogSumExp"}},
      {read_arg, {"ArgMax", "ArgMin"}},
  };
}

/// Functions and arithmetic, element by element.
std::vector<Family> element_families() {
  return {
      {read_activation,
       {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "HardSwish", "HardSigmoid", "Gelu", "Mish",
        "Swish"}},
      {read_function,
       {"Reciprocal", "Softsign", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh",
        "Atanh", "Floor", "Ceil", "Round", "Sign"}},
      {read_is_inf, {"IsInf"}},
      {read_is_nan, {"IsNaN"}},
      {read_clip, {"Clip"}},
      {read_thresholded_relu, {"ThresholdedRelu"}},
      {read_shrink, {"Shrink"}},
      {read_prelu, {"PRelu"}},
      {read_celu, {"Celu"}},
      {read_arithmetic,
       {"Add", "Sub", "Mul",   "Div",  "Pow",         "Sum",     "Mean",           "Sqrt", "Exp", "Log", "Abs", "Neg",
        "Min", "Max", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",  "Or",  "Xor", "Not"}},
      {read_mod, {"Mod"}},
      {read_where, {"Where"}},
      {read_cast, {"Cast", "CastLike"}},
  };
}

/// Nodes that move and choose elements.
std::vector<Family> other_families() {
  return {
      {read_view, {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}},
      {read_transpose, {"Transpose"}},
      {read_slice, {"Slice"}},
      {read_split, {"Split"}},
      {read_concat, {"Concat"}},
      {read_pad, {"Pad"}},
      {read_expand, {"Expand"}},
      {read_tile, {"Tile"}},
      {read_depth_to_space, {"DepthToSpace"}},
      {read_space_to_depth, {"SpaceToDepth"}},
      {read_gather, {"Gather"}},
      {read_gather_elements, {"GatherElements"}},
      {read_gather_nd, {"GatherND"}},
      {read_scatter_nd, {"ScatterND"}},
      {read_scatter_elements, {"ScatterElements", "Scatter"}},
      {read_resize, {"Resize", "Upsample"}},
      {read_grid_sample, {"GridSample"}},
      {read_affine_grid, {"AffineGrid"}},
      {read_trilu, {"Trilu"}},
      {read_one_hot, {"OneHot"}},
      {read_hardmax, {"Hardmax"}},
      {read_eye_like, {"EyeLike"}},
      {read_cum_sum, {"CumSum"}},
      {read_einsum, {"Einsum"}},
      {read_attention, {"Attention"}},
      {read_recurrent, {"LSTM", "GRU", "RNN"}},
      {read_class_loss, {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}},
      {read_dequantize, {"DequantizeLinear"}},
      {read_quantize, {"QuantizeLinear"}},
      {read_dynamic_quantize, {"DynamicQuantizeLinear"}},
  };
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> together;
    for (const auto& part : {layer_families(), element_families(), other_families()}) {
      together.insert(together.end(), part.begin(), part.end());
    }
    return together;
  }();
  return all;
}

NodeReader reader_of(const onnx::NodeProto& node) {
  const auto family = std::find_if(families().begin(), families().end(), [&](const Family& candidate) {
    return std::count(candidate.nodes.begin(), candidate.nodes.end(), node.op_type()) > 0;
  });
  return is_onnx_domain(node.domain()) && family != families().end() ? family->read : nullptr;
}

/// Calls `see` for each value that a node reads; in bodies of If, Loop and Scan too, and what these give.
void for_each_read(const onnx::NodeProto& node, const std::function<void(const std::string&)>& see) {
  for (const std::string& input : node.input()) see(input);
  for (const auto& attribute : node.attribute()) {
    for (const auto& inner : attribute.g().node()) for_each_read(inner, see);
    for (const auto& output : attribute.g().output()) see(output.name());
    for (const auto& body : attribute.graphs()) {
      for (const auto& inner : body.node()) for_each_read(inner, see);
    }
  }
}

/// Callers know inputs and outputs by their names.
void check_ports(const onnx::GraphProto& model) {
  if (model.output().empty()) throw Error(ErrorCode::parse_error, "has no outputs");
  std::set<std::string> inputs, outputs, given;
  for (const auto& node : model.node()) given.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : model.initializer()) given.insert(tensor.name());
  for (const auto& input : model.input()) {
    if (!inputs.insert(input.name()).second) {
      throw Error(ErrorCode::parse_error, fmt::format("has two inputs '{}'", printable_name(input.name())));
    }
  }
  for (const auto& output : model.output()) {
    if (!outputs.insert(output.name()).second) {
      throw Error(ErrorCode::parse_error, fmt::format("has two outputs '{}'", printable_name(output.name())));
    }
    if (!given.contains(output.name()) && !inputs.contains(output.name())) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("has an output '{}', which nothing defines", printable_name(output.name())));
    }
  }
}

class Import {
 public:
  Import(const onnx::ModelProto& model, const std::string& path, const OnnxOptions& options)
      : model_(model.graph()),
        declared_(inputs_of(model_, options.dtype)),
        inputs_(declared_.resolve(options.batch, options.shapes)),
        values_(path) {
    result_.files.push_back(std::filesystem::absolute(path).string());
    values_.opset = opset_of(model);
    values_.dtype = options.dtype;
    for (const auto* values : {&model_.value_info(), &model_.output()}) {
      for (const auto& value : *values) stated_.try_emplace(value.name(), &value);
    }
  }

  OnnxGraph run() {
    for (const auto& node : model_.node()) {
      for_each_read(node, [&](const std::string& name) { values_.used.insert(name); });
    }
    for (const auto& output : model_.output()) values_.used.insert(output.name());
    add_initial_values(model_);
    for (size_t i = 0; i < inputs_.extents.size(); ++i) add_input(declared_.all()[i], inputs_.extents[i]);
    for (const auto& node : model_.node()) add(node);
    find_roots();
    for (const auto& output : model_.output()) add_output(output);
    for (const std::string& name : read_outside_) keep(name);
    for (std::string& file : values_.files.files()) result_.files.push_back(std::move(file));
    result_.graph = std::move(values_.graph);
    result_.stored_bytes = values_.stored_bytes;
    return std::move(result_);
  }

 private:
  void add_initial_values(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) add_initial_value(tensor);
  }

  void add_initial_value(const onnx::TensorProto& tensor) {
    Extents extents(tensor.dims().begin(), tensor.dims().end());
    try {
      (void)graph::count_elements(extents);
    } catch (const Error& error) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("initializer '{}': {}", printable_name(tensor.name()), error.message()));
    }
    values_.known[tensor.name()] = {tensor.data_type(), std::move(extents), {}, {}, &tensor};
  }

  void add_input(const OnnxInput& input, const Extents& extents) {
    try {
      const ValueId value = values_.graph.input(input.name, input.dtype, extents);
      values_.known[input.name] = {input.element_type, extents, value, {}, {}};
      result_.inputs.push_back({input.name, input.type});
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("input '{}': {}", printable_name(input.name), error.message()),
                  error.hint());
    }
  }

  void add(const onnx::NodeProto& proto) {
    values_.budget.take_node();
    Node node(values_, proto);
    const size_t nodes = values_.graph.nodes().size();
    values_.graph.set_origin(name_of(proto));
    try {
      const NodeReader read = reader_of(proto);
      if (is_onnx_domain(proto.domain()) && proto.op_type() == "If") return add_branch(node);
      if (is_onnx_domain(proto.domain()) && computed_on_host(node)) return;
      if (read == nullptr) refuse("no operation of Kiln serves it");
      read(node);
    } catch (const Refusal& refusal) {
      values_.graph.truncate(nodes);
      for (const std::string& output : proto.output()) values_.known.erase(output);
      const std::string type =
          is_onnx_domain(proto.domain()) ? proto.op_type() : proto.domain() + "." + proto.op_type();
      result_.uncovered.push_back({name_of(proto), type, refusal.reason});
      for_each_read(proto, [&](const std::string& name) { read_outside_.insert(name); });
      open_outputs(node);
    } catch (const Error& error) {
      if (error.message().starts_with("node ")) throw;
      throw Error(error.code(), describe(proto) + ": " + error.message(), error.hint());
    }
  }

  /// An If whose condition is known is the nodes of one of its branches, which see all values of the model.
  void add_branch(const Node& node) {
    node.require_inputs(1, 1);
    const bool holds = node.number(0, "condition") != 0;
    const std::string_view name = holds ? "then_branch" : "else_branch";
    const auto& attributes = node.proto().attribute();
    const auto found =
        std::find_if(attributes.begin(), attributes.end(), [&](const auto& a) { return a.name() == name; });
    if (found == attributes.end() || found->g().output_size() != node.outputs()) {
      node.fail(fmt::format("has no {} of {} results", name, node.outputs()));
    }
    std::vector<std::string> inside;  // names that only the branch has
    const auto define = [&](const std::string& value) {
      if (values_.known.contains(value)) node.fail(fmt::format("defines '{}' a second time", printable_name(value)));
      inside.push_back(value);
    };
    for (const auto& tensor : found->g().initializer()) {
      define(tensor.name());
      add_initial_value(tensor);
    }
    for (const auto& inner : found->g().node()) {
      for (const std::string& output : inner.output()) {
        if (!output.empty()) define(output);
      }
      add(inner);
    }
    std::map<std::string, Known> results;
    for (int i = 0; i < node.outputs(); ++i) {
      const auto known = values_.known.find(found->g().output(i).name());
      if (known != values_.known.end()) results[node.proto().output(i)] = known->second;
    }
    for (const std::string& value : inside) values_.known.erase(value);  // another branch may use it again
    values_.known.insert(results.begin(), results.end());
  }

  /// Makes the outputs of a node that is not covered inputs of the graph, so that the nodes behind it can be read.
  void open_outputs(const Node& node) {
    const auto inferred = inferred_outputs(node);
    for (int i = 0; i < node.outputs(); ++i) {
      const std::string& name = node.proto().output(i);
      const std::optional<TensorType> type =
          inferred[static_cast<size_t>(i)] ? inferred[static_cast<size_t>(i)] : stated(name);
      if (type && node.gives(i)) open(name, *type);
    }
  }

  void open(const std::string& name, const TensorType& type) {
    try {
      const ValueId value = values_.graph.input(name, values_.storage_of(type.type), type.extents);
      values_.known[name] = {type.type, type.extents, value, {}, {}};
      result_.inputs.push_back({name, type_name(type.type)});
      opened_.insert(value);
    } catch (const Refusal&) {
      return;  // Kiln does not have such elements: what reads them is not covered either
    } catch (const Error&) {
      return;  // more elements than there can be
    }
  }

  std::optional<TensorType> stated(const std::string& name) const {
    const auto found = stated_.find(name);
    const bool is_of_another_batch = declared_.batch() && *declared_.batch() != inputs_.batch;
    if (found == stated_.end() || is_of_another_batch) return {};
    const auto& tensor = found->second->type().tensor_type();
    if (!tensor.has_shape()) return {};
    TensorType type{tensor.elem_type(), {}};
    for (const auto& dimension : tensor.shape().dim()) {
      const auto symbol = inputs_.symbols.find(dimension.dim_param());
      const bool is_known = symbol != inputs_.symbols.end();
      if (!is_known && !has_extent(dimension)) return {};
      type.extents.push_back(is_known ? symbol->second : dimension.dim_value());
    }
    return type;
  }

  /// The value whose elements each value shows in other extents, once all nodes are there.
  void find_roots() {
    roots_.resize(values_.graph.count());
    std::iota(roots_.begin(), roots_.end(), ValueId{0});
    for (const graph::Node& node : values_.graph.nodes()) {
      const graph::View* view = std::get_if<graph::View>(&node);
      const bool shows = view != nullptr && std::holds_alternative<graph::Reshape>(view->kind);
      if (shows) roots_[view->result] = roots_[view->source];
    }
    for (const auto& port : values_.graph.inputs()) ports_.insert(port.value);
  }

  /// Constants that outputs have become are values of their own.
  ValueId root_of(ValueId value) const { return value < roots_.size() ? roots_[value] : value; }

  void add_output(const onnx::ValueInfoProto& output) {
    const auto found = values_.known.find(output.name());
    if (found == values_.known.end()) return;  // of a node that is not covered
    try {
      const ValueId value = values_.device(output.name());
      if (opened_.contains(root_of(value))) return;  // likewise
      give(output.name(), value);
    } catch (const Refusal& refusal) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("output '{}' cannot be had: {}", printable_name(output.name()), refusal.reason));
    }
  }

  /// Makes an input of a node that is not covered an output of the graph, if the graph computes it.
  void keep(const std::string& name) {
    const auto found = values_.known.find(name);
    if (found == values_.known.end() || !found->second.value) return;
    const ValueId root = root_of(*found->second.value);
    if (!values_.graph.is_constant(root) && !ports_.contains(root)) give(name, *found->second.value);
  }

  void give(const std::string& name, ValueId value) {
    values_.graph.output(name, value);
    ports_.insert(root_of(value));
    result_.outputs.push_back({name, type_name(values_.known.at(name).type)});
  }

  const onnx::GraphProto& model_;
  OnnxInputs declared_;
  ResolvedInputs inputs_;
  Values values_;
  OnnxGraph result_;
  std::map<std::string, const onnx::ValueInfoProto*> stated_;
  std::vector<ValueId> roots_;
  std::set<ValueId> ports_;             // inputs and outputs of the graph, by their roots
  std::set<ValueId> opened_;            // inputs of the graph that nodes give which are not covered
  std::set<std::string> read_outside_;  // values that such nodes read
};

}  // namespace

std::vector<std::string> read_operations() {
  std::vector<std::string> operations = {"If"};
  for (const Family& family : families()) operations.insert(operations.end(), family.nodes.begin(), family.nodes.end());
  return operations;
}

void read_constant_of_shape(Node& node) {
  node.require_inputs(1, 1);
  const Extents extents = node.list(0, "extents");
  HostTensor one(onnx::TensorProto::FLOAT, {1}, HostTensor::Reals{0});
  for (const auto& attribute : node.proto().attribute()) {
    if (attribute.name() != "value" || !attribute.has_t()) continue;
    const int64_t count = graph::count_elements({attribute.t().dims().begin(), attribute.t().dims().end()});
    if (count != 1) node.fail(fmt::format("its value has {} elements, expected 1", count));
    one = read_tensor(attribute.t(), node.values().files);
  }
  node.give_repeated(one, extents);
}

}  // namespace onnx_frontend

namespace {

/// Result of `work`, whose errors name the file.
template <class Work>
auto of_file(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.message(), error.hint());
  } catch (...) {
    throw_as_error(path);
  }
}

}  // namespace

OnnxFile::OnnxFile(std::string path) : path_(std::move(path)) {
  model_ = of_file(path_, [&] {
    auto model = std::make_shared<const onnx::ModelProto>(onnx_frontend::load(path_));
    onnx_frontend::check_ports(model->graph());
    return model;
  });
}

OnnxInputs OnnxFile::inputs(std::optional<DType> dtype) const {
  return of_file(path_, [&] { return onnx_frontend::inputs_of(model_->graph(), dtype); });
}

OnnxGraph OnnxFile::read(const OnnxOptions& options) const {
  return of_file(path_, [&] { return onnx_frontend::Import(*model_, path_, options).run(); });
}

OnnxGraph read_onnx(const std::string& path, const OnnxOptions& options) {
  return OnnxFile(path).read(options);
}

}  // namespace kiln
