// Reading of single nodes, held against nodes.txt: the calls and views that the front makes of each, constants
// that it computes, and what it says of nodes that it refuses. Each node stands in one line:
//
//   Resize@18 f1x2x3x4 - - i[1,2,6,8] mode=linear       the operation, its opset (17), its inputs, its attributes
//
// An input is a letter for the element type (f float, h float16, g bfloat16, d double, p float8e4m3fn, q float8e5m2, b
// bool, c int8, u uint8, s int16, t uint16, j int32, v uint32, i int64, w uint64) and its extents; with elements in
// brackets, or one in parentheses, it is a constant, whose elements repeat where they are too few, as raw data behind a
// `=`. `-` is left out. An attribute is an integer, a number with a point, a list of either with a comma, a word, or a
// list of words with a bar behind each; with a colon in the place of the sign of equality it is a tensor, written as an
// input is. `-> 3`: the node has three outputs. The lines behind it are what the front makes of it.
//
// A difference is either a mistake or what a change was meant to do. The test leaves what it found beside its own
// program, to be compared and put in the place of the file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "onnx_model.h"

namespace kiln::test::onnx_table_test {
namespace {

constexpr const char* file_name = KILN_NODES_TABLE;

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

double number_of(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

int32_t type_of(char letter) {
  constexpr int32_t float8_e4m3fn = 17, float8_e5m2 = 19;  // of ONNX 1.14
  static const std::map<char, int32_t> types = {{'f', onnx::TensorProto::FLOAT},
                                                {'h', onnx::TensorProto::FLOAT16},
                                                {'g', onnx::TensorProto::BFLOAT16},
                                                {'d', onnx::TensorProto::DOUBLE},
                                                {'p', float8_e4m3fn},
                                                {'q', float8_e5m2},
                                                {'b', onnx::TensorProto::BOOL},
                                                {'c', onnx::TensorProto::INT8},
                                                {'u', onnx::TensorProto::UINT8},
                                                {'s', onnx::TensorProto::INT16},
                                                {'t', onnx::TensorProto::UINT16},
                                                {'j', onnx::TensorProto::INT32},
                                                {'v', onnx::TensorProto::UINT32},
                                                {'i', onnx::TensorProto::INT64},
                                                {'w', onnx::TensorProto::UINT64}};
  return types.at(letter);
}

int64_t integer_of(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

/// The element as an integer, and for types of floating-point numbers its bits.
int64_t bits_of(int32_t type, const std::string& text) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return std::bit_cast<int32_t>(static_cast<float>(number_of(text)));
    case onnx::TensorProto::DOUBLE:
      return std::bit_cast<int64_t>(number_of(text));
    case onnx::TensorProto::FLOAT16:
      return reference::to_f16(number_of(text));
    case onnx::TensorProto::BFLOAT16:
      return reference::to_bf16(number_of(text));
    default:
      if (type == type_of('p')) return reference::to_f8e4m3(number_of(text));
      if (type == type_of('q')) return reference::to_f8e5m2(number_of(text));
      return integer_of(text);
  }
}

size_t bytes_of(int32_t type) {
  static const std::map<size_t, std::string> letters = {{1, "pqbcu"}, {2, "hgst"}, {4, "fjv"}, {8, "diw"}};
  for (const auto& [bytes, of] : letters) {
    for (const char letter : of) {
      if (type_of(letter) == type) return bytes;
    }
  }
  return 0;
}

void add_element(onnx::TensorProto& tensor, const std::string& text) {
  const int64_t bits = bits_of(tensor.data_type(), text);
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return tensor.add_float_data(static_cast<float>(number_of(text)));
    case onnx::TensorProto::DOUBLE:
      return tensor.add_double_data(number_of(text));
    case onnx::TensorProto::INT64:
      return tensor.add_int64_data(bits);
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      return tensor.add_uint64_data(static_cast<uint64_t>(bits));
    default:
      return tensor.add_int32_data(static_cast<int32_t>(bits));
  }
}

/// An input as it is written.
struct Written {
  int32_t type;
  Ints extents;
  bool is_raw, is_constant;
  std::vector<std::string> elements;

  explicit Written(const std::string& word) : is_raw(word.starts_with('=')) {
    const std::string text = word.substr(is_raw ? 1 : 0);
    type = type_of(text[0]);
    const size_t open = text.find_first_of("[(");
    for (const std::string& extent : parts_of(text.substr(1, open == std::string::npos ? open : open - 1), 'x'))
      extents.push_back(integer_of(extent));
    is_constant = open != std::string::npos;
    if (!is_constant) return;
    elements = parts_of(text.substr(open + 1, text.size() - open - 2), ',');
    if (text[open] == '[' && extents.empty()) extents = {std::ssize(elements)};
  }

  void put(onnx::TensorProto& tensor) const {
    tensor.set_data_type(type);
    int64_t count = 1;
    for (const int64_t extent : extents) {
      tensor.add_dims(extent);
      count *= extent;
    }
    for (int64_t i = 0; i < count; ++i) {
      const std::string& element = elements.at(static_cast<size_t>(i) % elements.size());
      if (!is_raw) {
        add_element(tensor, element);
        continue;
      }
      const int64_t bits = bits_of(type, element);
      std::string raw(bytes_of(type), '\0');
      std::memcpy(raw.data(), &bits, raw.size());
      tensor.mutable_raw_data()->append(raw);
    }
  }
};

void add_attribute(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  const bool is_number = value.find_first_of("0123456789") != std::string::npos &&
                         value.find_first_not_of("-+.,e0123456789") == std::string::npos;
  const bool is_real = value.find('.') != std::string::npos;
  if (value.find('|') != std::string::npos) {
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& part : parts_of(value, '|')) attribute.add_strings(part);
  } else if (!is_number) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  } else if (value.find(',') != std::string::npos) {
    attribute.set_type(is_real ? onnx::AttributeProto::FLOATS : onnx::AttributeProto::INTS);
    for (const std::string& part : parts_of(value, ',')) {
      if (is_real) {
        attribute.add_floats(static_cast<float>(number_of(part)));
      } else {
        attribute.add_ints(integer_of(part));
      }
    }
  } else if (is_real) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(number_of(value)));
  } else {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(integer_of(value));
  }
}

/// A model of the node of that line.
OnnxModel model_of(const std::string& line) {
  std::vector<std::string> words = parts_of(line, ' ');
  size_t outputs = 1;
  if (words.size() > 2 && words[words.size() - 2] == "->") {
    outputs = std::stoul(words.back());
    words.resize(words.size() - 2);
  }
  const size_t at = words[0].find('@');
  OnnxModel model(at == std::string::npos ? 17 : std::stol(words[0].substr(at + 1)));
  std::vector<std::string> inputs, results = {"y", "y1", "y2", "y3"};
  results.resize(outputs);
  std::vector<std::string> attributes;
  for (const std::string& word : std::span(words).subspan(1)) {
    const std::string name = fmt::format("x{}", inputs.size());
    if (word.find_first_of("=:", 1) != std::string::npos) {
      attributes.push_back(word);
    } else if (word == "-") {
      inputs.emplace_back();
    } else {
      inputs.push_back(name);
      const Written written(word);
      if (written.is_constant) {
        onnx::TensorProto& tensor = *model.graph().add_initializer();
        tensor.set_name(name);
        written.put(tensor);
      } else {
        model.input(name, {written.extents.begin(), written.extents.end()}, written.type);
      }
    }
  }
  onnx::NodeProto& node = model.node(words[0].substr(0, at), inputs, results);
  for (const std::string& word : attributes) {
    const size_t sign = word.find_first_of("=:");
    const std::string name = word.substr(0, sign), value = word.substr(sign + 1);
    if (word[sign] == '=') {
      add_attribute(node, name, value);
    } else {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::TENSOR);
      Written(value).put(*attribute.mutable_t());
    }
  }
  for (const std::string& name : results) model.output(name);
  return model;
}

/// Nodes that the outputs of a graph are made of, in its own words: `v4 = reshape 2x3 (x0)`. Each node stands behind
/// what it reads, the first output's first.
class Listing {
 public:
  explicit Listing(const OnnxGraph& model) : model_(model), graph_(model.graph) {
    for (const graph::Graph::Port& port : graph_.inputs()) names_[port.value] = port.name;
    for (const graph::Node& node : graph_.nodes())
      graph::for_each_output(node, [&](graph::ValueId id) { makers_[id] = &node; });
  }

  std::string text() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const auto& [name, id] = graph_.outputs()[i];
      const std::string from = name_of(id);  // which lists what it is made of
      const graph::Extents& extents = graph_.value(id).extents;
      lines_ += fmt::format("  {} = {}: {} {}\n", name, from, model_.outputs[i].type, fmt::join(extents, "x"));
    }
    return lines_;
  }

 private:
  /// Lists the constant, or the node, that has not been listed yet.
  std::string name_of(graph::ValueId id) {
    if (const auto known = names_.find(id); known != names_.end()) return known->second;
    if (graph_.is_constant(id)) {
      const graph::Value& value = graph_.value(id);
      lines_ += fmt::format("  {} = {} {} {}\n", give_name(id, 'c'), to_string(value.dtype),
                            fmt::join(value.extents, "x"), elements_of(value.dtype, *graph_.bytes(id)));
    } else {
      std::visit([&](const auto& node) { add(node); }, *makers_.at(id));
    }
    return names_.at(id);
  }

  std::string give_name(graph::ValueId id, char kind) { return names_[id] = fmt::format("{}{}", kind, names_.size()); }

  /// All of them, or, of many, their number and a sum in which places count.
  static std::string elements_of(DType dtype, const std::vector<std::byte>& bytes) {
    constexpr size_t most = 64;
    std::vector<std::string> elements;
    double sum = 0;
    const auto size = static_cast<size_t>(size_of(dtype));
    for (size_t i = 0; i < bytes.size() / size; ++i) {
      const double element = reference::load(dtype, bytes.data() + i * size);
      elements.push_back(is_floating(dtype) ? fmt::format("{:.6g}", element) : fmt::format("{:.0f}", element));
      sum += element * static_cast<double>(1 + i % 7);
    }
    return elements.size() <= most ? fmt::format("[{}]", fmt::join(elements, " "))
                                   : fmt::format("{} elements, {:.6g}", elements.size(), sum);
  }

  void add(const graph::Call& call) {
    Request request = call.request;
    std::vector<std::string> results, operands;
    for (const graph::Operand& operand : call.inputs) {
      operands.push_back(fmt::format("{}={}", operand.name, name_of(operand.value)));
      add_operand(request, operand);
    }
    for (const auto& [name, number] : call.numbers) operands.push_back(fmt::format("{}={:.6g}", name, number));
    for (const graph::Operand& operand : call.outputs) {
      results.push_back(give_name(operand.value, 'v'));
      add_operand(request, operand);
    }
    const std::string code = request.user_code ? " `" + request.user_code.expression()->text() + "`" : "";
    lines_ += fmt::format("  {} = {}{} ({})\n", fmt::join(results, ", "), finished(std::move(request)).key(), code,
                          fmt::join(operands, ", "));
  }

  void add_operand(Request& request, const graph::Operand& operand) const {
    const graph::Value& value = graph_.value(operand.value);
    const std::string_view letters = dimension_letters(static_cast<int>(value.extents.size()));
    request.operands.push_back({operand.name, TensorSpec::packed(value.dtype, value.extents, letters)});
  }

  void add(const graph::View& view) {
    const std::string from = name_of(view.source), to = give_name(view.result, 'v');
    const graph::Extents& extents = graph_.value(view.result).extents;
    std::string how = "reshape";
    if (const auto* permute = std::get_if<graph::Permute>(&view.kind)) {
      how = fmt::format("permute {} to", fmt::join(permute->order, ","));
    } else if (const auto* slice = std::get_if<graph::Slice>(&view.kind)) {
      how = fmt::format("slice from {} by {} to", fmt::join(slice->begin, ","), fmt::join(slice->step, ","));
    } else if (std::holds_alternative<graph::Repeat>(view.kind)) {
      how = "repeat";
    }
    lines_ += fmt::format("  {} = {} {} ({})\n", to, how, fmt::join(extents, "x"), from);
  }

  void add(const graph::Concat& concat) {
    std::vector<std::string> parts;
    for (const graph::ValueId part : concat.parts) parts.push_back(name_of(part));
    lines_ +=
        fmt::format("  {} = concat {} ({})\n", give_name(concat.result, 'v'), concat.axis, fmt::join(parts, ", "));
  }

  const OnnxGraph& model_;
  const graph::Graph& graph_;
  std::map<graph::ValueId, const graph::Node*> makers_;
  std::map<graph::ValueId, std::string> names_;
  std::string lines_;
};

std::string text_of(const std::string& line) {
  const TemporaryFile file(model_of(line).bytes());
  try {
    const OnnxGraph model = read_onnx(file.path());
    std::string text;
    for (const UncoveredNode& node : model.uncovered) text += fmt::format("  not covered: {}\n", node.reason);
    return text.empty() ? Listing(model).text() : text;
  } catch (const Error& error) {
    const std::string message = error.message();
    const size_t path = message.find(file.path() + ": ");
    return fmt::format("  {}: {}\n", to_string(error.code()),
                       path == 0 ? message.substr(file.path().size() + 2) : message);
  }
}

TEST(OnnxTable, NodesBecomeWhatTheTableSays) {
  std::ifstream file(file_name);
  ASSERT_TRUE(file) << file_name;
  std::string expected, found, differences, block, line;
  int shown = 0;
  const auto compare = [&](const std::string& node) {
    if (node.empty()) return;
    const std::string fresh = text_of(node);
    found += fresh;
    if (fresh != block && ++shown <= 20) differences += node + "\n expected\n" + block + " found\n" + fresh;
    block.clear();
  };
  std::string node;
  while (std::getline(file, line)) {
    expected += line + "\n";
    if (line.starts_with(' ')) {
      block += line + "\n";
      continue;
    }
    compare(node);
    found += line + "\n";
    node = line.starts_with('#') ? "" : line;
  }
  compare(node);
  if (expected == found) return;
  std::ofstream("nodes.txt") << found;
  ADD_FAILURE() << "nodes become something else now (all of it in " << std::filesystem::absolute("nodes.txt").string()
                << "; if that is what the change was to do, put it in the place of " << file_name << "):\n"
                << differences;
}

}  // namespace
}  // namespace kiln::test::onnx_table_test
