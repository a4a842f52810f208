#include "onnx_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace kiln::test {
namespace {

void set(onnx::AttributeProto& attribute, const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*integer);
  } else if (const auto* real = std::get_if<float>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(*real);
  } else if (const auto* word = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*word);
  } else {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t element : std::get<Ints>(value)) {
      attribute.add_ints(element);
    }
  }
}

}  // namespace

OnnxModel::OnnxModel(int64_t opset) {
  proto_.set_ir_version(7);
  proto_.add_opset_import()->set_version(opset);
  graph().set_name("test");
}

OnnxModel& OnnxModel::input(const std::string& name, const std::vector<Extent>& extents, int32_t type) {
  onnx::ValueInfoProto& value = *graph().add_input();
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const Extent& extent : extents) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    if (const auto* number = std::get_if<int64_t>(&extent)) {
      dimension.set_dim_value(*number);
    } else if (!std::get<std::string>(extent).empty()) {
      dimension.set_dim_param(std::get<std::string>(extent));
    }
  }
  return *this;
}

OnnxModel& OnnxModel::weights(const std::string& name, const std::vector<int64_t>& extents,
                              const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    tensor.add_dims(extent);
    elements *= extent;
  }
  for (int64_t i = 0; i < elements; ++i)
    tensor.add_float_data(values.empty() ? 0.5F : values.at(static_cast<size_t>(i)));
  return *this;
}

OnnxModel& OnnxModel::scalar(const std::string& name, float value) {
  return weights(name, {}, {value});
}

OnnxModel& OnnxModel::integers(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return *this;
}

onnx::NodeProto& OnnxModel::node(const std::string& type, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const Attributes& attributes) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(type);
  for (const std::string& input : inputs) {
    node.add_input(input);
  }
  for (const std::string& output : outputs) {
    node.add_output(output);
  }
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    set(attribute, value);
  }
  return node;
}

OnnxModel& OnnxModel::output(const std::string& name) {
  graph().add_output()->set_name(name);
  return *this;
}

onnx::GraphProto& add_graph(onnx::NodeProto& node, const std::string& name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  return *attribute.mutable_g();
}

OnnxModel one_node(const std::string& type, const std::vector<Ints>& inputs, const Attributes& attributes,
                   int64_t opset, int32_t element_type, const std::vector<Ints>& integers) {
  OnnxModel model(opset);
  std::vector<std::string> names;
  for (const Ints& extents : inputs) {
    names.push_back(fmt::format("x{}", names.size()));
    model.input(names.back(), {extents.begin(), extents.end()}, element_type);
  }
  for (const Ints& values : integers) {
    names.push_back(fmt::format("i{}", names.size()));
    model.integers(names.back(), values);
  }
  model.node(type, names, {"y"}, attributes);
  model.output("y");
  return model;
}

TemporaryFile::TemporaryFile(const std::string& contents) {
  path_ = testing::TempDir() + "kiln_onnx_XXXXXX";
  const int descriptor = mkstemp(path_.data());
  if (descriptor < 0) {
    throw std::runtime_error("cannot make a temporary file: " + path_);
  }
  close(descriptor);
  std::ofstream(path_, std::ios::binary) << contents;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace kiln::test
