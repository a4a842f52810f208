#include "hostile_model.h"

#include <fmt/format.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "hostile_tensor.h"
#include "node_forms.h"
#include "onnx/host_nodes.h"
#include "onnx/readers.h"

namespace kiln::fuzz {
namespace {

using Type = onnx::TensorProto;
using Attribute = onnx::AttributeProto;
using Kind = Operand::Kind;
using Extents = std::vector<int64_t>;

/// ONNX operations that models may use.
struct Operations {
  std::vector<std::string> covered;  ///< Operations that the front reads or computes.
  std::vector<std::string> all;      ///< And all others.
};

const Operations& operations() {
  static const Operations found = [] {
    std::set<std::string> covered, all;
    for (const std::string& name : onnx_frontend::read_operations()) covered.insert(name);
    for (const std::string& name : onnx_frontend::host_operations()) covered.insert(name);
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) all.insert(schema.Name());
    all.insert(covered.begin(), covered.end());
    return Operations{{covered.begin(), covered.end()}, {all.begin(), all.end()}};
  }();
  return found;
}

/// Whether the first result is as large as the first input.
bool keeps_extents(const std::string& operation) {
  static const std::set<std::string> others = {"Conv",
                                               "ConvTranspose",
                                               "MaxPool",
                                               "AveragePool",
                                               "GlobalMaxPool",
                                               "GlobalAveragePool",
                                               "MaxUnpool",
                                               "Gemm",
                                               "MatMul",
                                               "ArgMax",
                                               "ArgMin",
                                               "Reshape",
                                               "Flatten",
                                               "Squeeze",
                                               "Unsqueeze",
                                               "Transpose",
                                               "Slice",
                                               "Split",
                                               "Concat",
                                               "Pad",
                                               "Expand",
                                               "Tile",
                                               "DepthToSpace",
                                               "SpaceToDepth",
                                               "Gather",
                                               "GatherND",
                                               "GatherElements",
                                               "Resize",
                                               "Upsample",
                                               "OneHot",
                                               "Einsum",
                                               "Constant",
                                               "ConstantOfShape",
                                               "Range",
                                               "Shape",
                                               "Size",
                                               "NonZero",
                                               "Where",
                                               "NegativeLogLikelihoodLoss",
                                               "SoftmaxCrossEntropyLoss"};
  return !others.contains(operation) && !operation.starts_with("Reduce");
}

/// Null for operations that ONNX's library is too old for.
const onnx::OpSchema* schema_of(const std::string& operation, int64_t opset) {
  constexpr int newest = 1000;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(operation, static_cast<int>(opset));
  return schema != nullptr ? schema : onnx::OpSchemaRegistry::Schema(operation, newest);
}

class Builder {
 public:
  Builder(Choices& choices, std::size_t percent) : choices_(choices), oddity_(choices, percent) {
    constexpr std::array usual = {Type::FLOAT, Type::FLOAT, Type::FLOAT, Type::FLOAT16, Type::BFLOAT16, Type::DOUBLE};
    constexpr std::array<int64_t, 8> opsets = {7, 9, 11, 13, 13, 17, 18, 22};
    real_ = choices.one_of(usual);
    opset_ = choices.one_of(opsets);
    model_.set_ir_version(7);
    model_.add_opset_import()->set_version(opset_);
    graph_ = model_.mutable_graph();
    graph_->set_name("hostile");
  }

  onnx::ModelProto run() {
    constexpr size_t most_nodes = 12, percent_patterns = 6;
    if (choices_.holds(percent_patterns)) pattern();
    const size_t nodes = choices_.below(3) == 0 ? choices_.below(most_nodes) + 1 : 1;
    for (size_t i = 0; i < nodes; ++i) add_node();
    add_outputs();
    constexpr size_t percent_changed = 3;
    if (choices_.holds(percent_changed)) change_model();
    return std::move(model_);
  }

 private:
  struct Value {
    std::string name;
    Kind kind;
    std::optional<Extents> extents;  // nothing where they are not known here
  };

  std::string fresh() { return fmt::format("v{}", count_++); }

  /// A name for an input or output that has nothing to do with it.
  std::string any_name() {
    const size_t which = choices_.below(8);
    if (which == 0) return "";
    if (which == 1) return "nobody";
    if (which == 2) return fmt::format("v{}", count_ + choices_.below(4));  // of a node that comes later
    if (which == 3) return "\x1b]0;title\x07 v\xff";
    return values_.empty() ? "nobody" : choices_.one_of(values_).name;
  }

  int32_t type_of(Kind kind) {
    switch (kind) {
      case Kind::reals:
        return oddity_.type(real_);
      case Kind::flags:
        return oddity_.type(Type::BOOL);
      case Kind::bytes:
        return oddity_.type(choices_.holds(70) ? Type::UINT8 : Type::INT8);
      default:
        return oddity_.type(choices_.holds(80) ? Type::INT64 : Type::INT32);
    }
  }

  void declare(onnx::ValueInfoProto& value, const std::string& name, int32_t type, const Extents& extents) {
    value.set_name(name);
    if (oddity_.very_odd()) return;  // of no type
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    if (oddity_.very_odd()) return;  // of no extents
    tensor.mutable_shape();
    const bool is_open = choices_.holds(10);
    for (const int64_t extent : extents) {
      auto& dimension = *tensor.mutable_shape()->add_dim();
      const bool is_first = tensor.shape().dim_size() == 1;
      const bool symbol = is_first ? is_open : (is_open && choices_.holds(30)) || oddity_.very_odd();
      if (symbol) {
        dimension.set_dim_param(is_first || choices_.holds(20) ? "N" : "H");
      } else {
        dimension.set_dim_value(extent);
      }
    }
  }

  std::string initial(int32_t type, const Operand& operand) {
    const std::string name = fresh();
    onnx::TensorProto* tensor = nullptr;
    if (choices_.holds(20)) {  // a node in place of an initializer
      onnx::NodeProto& node = *graph_->add_node();
      node.set_op_type("Constant");
      node.add_output(name);
      Attribute& attribute = *node.add_attribute();
      attribute.set_name("value");
      attribute.set_type(Attribute::TENSOR);
      tensor = attribute.mutable_t();
    } else {
      tensor = graph_->add_initializer();
      tensor->set_name(name);
    }
    fill(*tensor, type, operand.extents, operand.elements, oddity_);
    values_.push_back({name, operand.kind, operand.extents});
    return name;
  }

  std::string input(int32_t type, const Operand& operand) {
    const std::string name = fresh();
    declare(*graph_->add_input(), name, type, operand.extents);
    values_.push_back({name, operand.kind, operand.extents});
    return name;
  }

  /// A value that is there already, of the operand's kind and extents.
  const Value* existing(const Operand& operand) {
    std::vector<const Value*> fitting;
    for (const Value& value : values_) {
      if (value.kind == operand.kind && (!value.extents || *value.extents == operand.extents))
        fitting.push_back(&value);
    }
    return fitting.empty() ? nullptr : choices_.one_of(fitting);
  }

  std::string name_of(Operand operand, bool constants) {
    if (operand.kind == Kind::absent || oddity_.very_odd()) return oddity_.odd() ? any_name() : "";
    if (oddity_.very_odd()) return any_name();
    if (oddity_.odd()) operand.extents = oddity_.extents();
    const bool known = operand.is_list || constants;
    const bool is_constant = oddity_.odd() != (known || choices_.holds(30));
    for (int64_t& extent : operand.extents) {
      // A constant of more has no elements in the file.
      if (oddity_.odd()) extent = is_constant ? static_cast<int64_t>(choices_.below(5)) : oddity_.extent();
    }
    for (double& element : operand.elements) {
      element = operand.kind == Kind::integers ? static_cast<double>(oddity_.integer(integer_near(element)))
                                               : oddity_.real(element);
    }
    if (!known && choices_.holds(60)) {
      if (const Value* value = existing(operand)) return value->name;
    }
    const int32_t type = type_of(operand.kind);
    return is_constant ? initial(type, operand) : input(type, operand);
  }

  /// One extent of the form in all its places becomes another: the operands still go together.
  void stretch(NodeForm& form) {
    Extents all;
    for (const Operand& operand : form.operands) all.insert(all.end(), operand.extents.begin(), operand.extents.end());
    if (all.empty()) return;
    const int64_t from = choices_.one_of(all), to = oddity_.extent();
    for (Operand& operand : form.operands) {
      if (!operand.is_list) std::replace(operand.extents.begin(), operand.extents.end(), from, to);
      std::replace(operand.elements.begin(), operand.elements.end(), static_cast<double>(from),
                   static_cast<double>(to));
    }
  }

  void set_value(Attribute& attribute, const AttributeForm& form) {
    attribute.set_name(form.name);
    if (const auto* integer = std::get_if<int64_t>(&form.value)) {
      attribute.set_type(Attribute::INT);
      attribute.set_i(oddity_.integer(*integer));
    } else if (const auto* real = std::get_if<float>(&form.value)) {
      attribute.set_type(Attribute::FLOAT);
      attribute.set_f(single_near(oddity_.real(static_cast<double>(*real))));
    } else if (const auto* word = std::get_if<std::string>(&form.value)) {
      attribute.set_type(Attribute::STRING);
      attribute.set_s(oddity_.odd() ? any_word() : *word);
    } else {
      attribute.set_type(Attribute::INTS);
      Extents values = std::get<Extents>(form.value);
      if (oddity_.odd()) values.resize(choices_.below(2 * values.size() + 2), 1);
      for (const int64_t value : values) attribute.add_ints(oddity_.integer(value));
    }
  }

  std::string any_word() {
    static const std::array<std::string, 12> words = {"",      "SAME_UPPER",    "VALID",   "reflect",
                                                      "cubic", "align_corners", "ij,jk->", "...i->i...",
                                                      "->",    "ii,,i",         "wrap",    "asymmetric"};
    return choices_.holds(5) ? std::string(choices_.below(3000), 'a') : choices_.one_of(words);
  }

  /// An attribute of that name and kind with any value.
  void add_any(onnx::NodeProto& node, const std::string& name, Attribute::AttributeType type) {
    Attribute& attribute = *node.add_attribute();
    attribute.set_name(name);
    constexpr std::array kinds = {Attribute::INT,  Attribute::FLOAT,  Attribute::STRING,  Attribute::TENSOR,
                                  Attribute::INTS, Attribute::FLOATS, Attribute::STRINGS, Attribute::GRAPH};
    attribute.set_type(oddity_.odd() ? choices_.one_of(kinds) : type);
    const size_t length = choices_.below(8);
    switch (attribute.type()) {
      case Attribute::FLOAT:
        return attribute.set_f(single_near(oddity_.real()));
      case Attribute::STRING:
        return attribute.set_s(any_word());
      case Attribute::TENSOR:
        return fill(*attribute.mutable_t(), type_of(choices_.holds(50) ? Kind::reals : Kind::integers),
                    choices_.holds(70) ? Extents{1} : oddity_.extents(), {}, oddity_);
      case Attribute::INTS:
        for (size_t i = 0; i < length; ++i) attribute.add_ints(oddity_.integer());
        return;
      case Attribute::FLOATS:
        for (size_t i = 0; i < length; ++i) attribute.add_floats(single_near(oddity_.real()));
        return;
      case Attribute::STRINGS:
        for (size_t i = 0; i < length; ++i) attribute.add_strings(any_word());
        return;
      case Attribute::GRAPH:
        return branch(*attribute.mutable_g());
      default:
        return attribute.set_i(choices_.holds(50) ? static_cast<int64_t>(choices_.below(3)) : oddity_.integer());
    }
  }

  void add_attributes(onnx::NodeProto& node, const NodeForm& form, const onnx::OpSchema* schema) {
    for (const AttributeForm& attribute : form.attributes) {
      if (!oddity_.odd()) set_value(*node.add_attribute(), attribute);
    }
    if (schema != nullptr) {
      for (const auto& [name, attribute] : schema->attributes()) {
        if (oddity_.odd()) add_any(node, name, static_cast<Attribute::AttributeType>(attribute.type));
      }
    }
    if (oddity_.very_odd()) add_any(node, any_word(), Attribute::INT);
  }

  void add_results(onnx::NodeProto& node, const std::string& operation, const onnx::OpSchema* schema,
                   const std::optional<Extents>& extents, Kind kind) {
    size_t count = operation == "Split" ? 2 : 1;
    if (schema != nullptr && schema->max_output() > 1) count = std::max(count, choices_.below(3) + 1);
    if (oddity_.very_odd()) count = choices_.below(6);
    for (size_t i = 0; i < count; ++i) {
      const std::string name = oddity_.very_odd() ? any_name() : fresh();
      node.add_output(name);
      values_.push_back({name, kind, i == 0 ? extents : std::nullopt});
      results_.push_back(name);
      if (choices_.holds(10)) declare(*graph_->add_value_info(), name, type_of(kind), extents.value_or(Extents{2, 3}));
    }
  }

  /// An operand as the schema names it, of a rank that fits the others or none of them.
  Operand operand_of(const onnx::OpSchema::FormalParameter& parameter, size_t rank) {
    const auto takes = [&](std::string_view type) {
      return std::any_of(parameter.GetTypes().begin(), parameter.GetTypes().end(),
                         [&](const std::string* allowed) { return *allowed == type; });
    };
    if (parameter.GetOption() == onnx::OpSchema::Optional && choices_.holds(40)) return {};
    Operand operand;
    operand.kind = takes("tensor(float)")   ? Kind::reals
                   : takes("tensor(int64)") ? Kind::integers
                   : takes("tensor(bool)")  ? Kind::flags
                                            : Kind::bytes;
    operand.is_list = operand.kind == Kind::integers && choices_.holds(60);
    if (operand.is_list) rank = choices_.below(2);
    for (size_t axis = 0; axis < rank; ++axis) operand.extents.push_back(static_cast<int64_t>(choices_.below(5)));
    return operand;
  }

  /// A form that the schema of an operation allows, whatever the operation does: also of operations that the front does
  /// not cover, whose results ONNX's own inference is asked about.
  NodeForm form_of(const onnx::OpSchema& schema) {
    constexpr size_t ranks = 6;
    const size_t rank = choices_.below(ranks);
    NodeForm form;
    const auto& inputs = schema.inputs();
    const int most = std::min(schema.max_input(), schema.min_input() + static_cast<int>(choices_.below(4)));
    for (int i = 0; i < most; ++i) {
      form.operands.push_back(operand_of(inputs[std::min(static_cast<size_t>(i), inputs.size() - 1)],
                                         choices_.holds(70) ? rank : choices_.below(ranks)));
    }
    for (const auto& [name, attribute] : schema.attributes()) {
      if (!attribute.required && choices_.holds(50)) continue;
      const auto small = [&] { return static_cast<int64_t>(choices_.below(5)) - 1; };
      switch (attribute.type) {
        case Attribute::INT:
          form.attributes.push_back({name, small()});
          break;
        case Attribute::FLOAT:
          form.attributes.push_back({name, 0.5F});
          break;
        case Attribute::STRING:
          form.attributes.push_back({name, any_word()});
          break;
        case Attribute::INTS: {
          Extents values(choices_.holds(70) ? rank : choices_.below(ranks));
          std::generate(values.begin(), values.end(), small);
          form.attributes.push_back({name, std::move(values)});
          break;
        }
        default:
          break;  // add_attributes() adds some
      }
    }
    return form;
  }

  std::string any_operation() {
    constexpr size_t percent_others = 12;
    if (choices_.holds(percent_others)) return choices_.one_of(operations().all);
    return oddity_.very_odd() ? any_word() : choices_.one_of(operations().covered);
  }

  void add_node() {
    const std::string operation = any_operation();
    if (operation == "If") return add_if();
    const onnx::OpSchema* schema = schema_of(operation, opset_);
    const int inputs = schema == nullptr ? 1 : std::clamp(schema->min_input(), 0, 8);
    NodeForm form =
        schema != nullptr && choices_.holds(15) ? form_of(*schema) : choices_.one_of(forms_of(operation, inputs));
    if (oddity_.odd() || oddity_.odd()) stretch(form);
    const Operand further{.kind = Kind::reals, .extents = {2, 3}};
    if (oddity_.odd()) form.operands.resize(choices_.below(form.operands.size() + 3), further);
    const bool constants = choices_.holds(25);
    onnx::NodeProto node;
    node.set_op_type(operation);
    if (choices_.holds(20)) node.set_name(choices_.holds(50) ? "again" : any_word());
    if (oddity_.very_odd()) node.set_domain(choices_.holds(50) ? "ai.onnx" : "com.microsoft");
    for (const Operand& operand : form.operands) node.add_input(name_of(operand, constants));
    add_attributes(node, form, schema);
    const bool known = keeps_extents(operation) && !form.operands.empty();
    add_results(node, operation, schema, known ? std::optional(form.operands[0].extents) : std::nullopt,
                form.operands.empty() ? Kind::reals : form.operands[0].kind);
    *graph_->add_node() = std::move(node);
  }

  /// A body of one node over the values outside.
  void branch(onnx::GraphProto& body) {
    body.set_name("body");
    onnx::NodeProto& node = *body.add_node();
    node.set_op_type(choices_.one_of(operations().covered));
    node.add_input(any_name());
    node.add_output(oddity_.odd() ? any_name() : fresh());
    body.add_output()->set_name(oddity_.odd() ? any_name() : node.output(0));
    if (oddity_.odd()) fill(*body.add_initializer(), real_, oddity_.extents(), {}, oddity_);
  }

  void add_if() {
    const std::string condition =
        initial(oddity_.type(Type::BOOL), {.kind = Kind::flags, .elements = {1}, .is_list = true});
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type("If");
    node.add_input(condition);
    for (const char* name : {"then_branch", "else_branch"}) {
      if (oddity_.odd()) continue;
      Attribute& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(Attribute::GRAPH);
      branch(*attribute.mutable_g());
    }
    add_results(node, "If", nullptr, std::nullopt, Kind::reals);
  }

  onnx::NodeProto& simple_node(const std::string& operation, const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type(operation);
    for (const std::string& name : inputs) node.add_input(name);
    node.add_output(fresh());
    return node;
  }

  void set_integer(onnx::NodeProto& node, const char* name, int64_t value) {
    set_value(*node.add_attribute(), {name, value});
  }

  /// Graphs that are large, deep or wide.
  void pattern() {
    const Operand x{.kind = Kind::reals, .extents = choices_.holds(50) ? Extents{2} : Extents{2, 3}};
    const bool constants = choices_.holds(40);
    std::string last = constants ? initial(real_, x) : input(real_, x);
    switch (choices_.below(6)) {
      case 0: {  // a chain
        static const std::array<std::string, 6> links = {"Relu", "Neg", "Identity", "Exp", "Add", "Shape"};
        const std::string& link = choices_.one_of(links);
        for (size_t i = choices_.below(2000); i > 0; --i) {
          last = simple_node(link, link == "Add" ? std::vector{last, last} : std::vector{last}).output(0);
        }
        break;
      }
      case 1: {  // covered and not covered in turns
        for (size_t i = choices_.below(1500); i > 0; --i) {
          const std::string covered = simple_node("Relu", {last}).output(0);
          last = simple_node("Nobody", {covered}).output(0);
          declare(*graph_->add_value_info(), last, real_, x.extents);
        }
        break;
      }
      case 2: {  // each twice as large as the one before
        for (size_t i = choices_.below(70); i > 0; --i) {
          onnx::NodeProto& node = simple_node("Concat", {last, last});
          set_integer(node, "axis", 0);
          last = node.output(0);
        }
        break;
      }
      case 3: {  // wide
        const std::vector<std::string> inputs(choices_.below(2000) + 1, last);
        onnx::NodeProto& node = simple_node(choices_.holds(50) ? "Concat" : "Sum", inputs);
        set_integer(node, "axis", 0);
        last = node.output(0);
        break;
      }
      case 4: {  // of many dimensions, in the other order, as one
        const Operand deep{.kind = Kind::reals, .extents = Extents(choices_.below(34), 2)};
        last = simple_node("Transpose", {input(real_, deep)}).output(0);
        const Operand flat{.kind = Kind::integers, .extents = {1}, .elements = {-1}, .is_list = true};
        last = simple_node("Reshape", {last, initial(Type::INT64, flat)}).output(0);
        break;
      }
      default: {  // many results
        onnx::NodeProto& node = simple_node("Split", {last});
        for (size_t i = choices_.below(3000); i > 0; --i) node.add_output(fresh());
        last = node.output(0);
      }
    }
    values_.push_back({last, Kind::reals, std::nullopt});
    results_.push_back(last);
  }

  void add_outputs() {
    for (const std::string& name : results_) {
      const bool is_last = &name == &results_.back();
      if (is_last ? !oddity_.very_odd() : choices_.holds(30)) graph_->add_output()->set_name(name);
    }
    if (oddity_.very_odd()) declare(*graph_->add_output(), any_name(), type_of(Kind::reals), oddity_.extents());
  }

  /// One place of the model that nodes do not see.
  void change_model() {
    switch (choices_.below(8)) {
      case 0:
        return model_.mutable_opset_import(0)->set_version(oddity_.integer());
      case 1:
        return model_.mutable_opset_import(0)->set_domain("com.microsoft");
      case 2:
        return model_.clear_opset_import();
      case 3:
        if (graph_->input_size() > 0) *graph_->add_input() = graph_->input(0);
        return;
      case 4:
        if (graph_->initializer_size() > 0) *graph_->add_initializer() = graph_->initializer(0);
        return;
      case 5: {
        onnx::SparseTensorProto& sparse = *graph_->add_sparse_initializer();
        fill(*sparse.mutable_values(), real_, {1}, {}, oddity_);
        sparse.mutable_values()->set_name(any_name());
        fill(*sparse.mutable_indices(), Type::INT64, {1}, {}, oddity_);
        sparse.add_dims(oddity_.integer());
        return;
      }
      case 6:
        if (graph_->node_size() > 1) graph_->mutable_node()->SwapElements(0, graph_->node_size() - 1);
        return;
      default:
        graph_->add_input()->set_name(any_name());
    }
  }

  Choices& choices_;
  Oddity oddity_;
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = nullptr;
  int32_t real_ = Type::FLOAT;
  int64_t opset_ = 13;
  std::vector<Value> values_;
  std::vector<std::string> results_;
  size_t count_ = 0;
};

}  // namespace

onnx::ModelProto hostile_model(Choices& choices) {
  constexpr std::array<size_t, 10> percents = {0, 1, 1, 2, 2, 4, 4, 8, 15, 40};
  return Builder(choices, choices.one_of(percents)).run();
}

}  // namespace kiln::fuzz
