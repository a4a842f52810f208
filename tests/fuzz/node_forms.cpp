#include "node_forms.h"

#include <array>
#include <charconv>
#include <cstdlib>

namespace kiln::fuzz {
namespace {

struct Row {
  std::string_view operation, operands, attributes;
};

// Operands: f reals, b flags, u bytes, i integers, each with its extents; i[..] and f[..] are lists, i(..) and f(..)
// scalars that have to be known; - is left out. Attributes: 1 is an integer, 1.0 a number, 1, a list, all else a word.
// A row whose operation ends in * is for all that begin so.
constexpr std::array rows = {
    Row{"Conv", "f1x4x6x6 f8x4x3x3 f8", "pads=1,1,1,1"},
    Row{"Conv", "f2x6x9 f6x2x3", "group=3 strides=2, dilations=1, kernel_shape=3,"},
    Row{"Conv", "f1x2x4x5x6 f3x2x2x2x2", "auto_pad=SAME_UPPER"},
    Row{"ConvTranspose", "f1x4x5x5 f4x3x3x3 f3", "strides=2,2 output_padding=1,1 pads=1,1,1,1"},
    Row{"ConvTranspose", "f1x4x5 f4x2x3", "group=2 strides=2, output_shape=9,"},
    Row{"MaxPool", "f1x3x7x7", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
    Row{"MaxPool", "f1x3x7", "kernel_shape=2, dilations=2, ceil_mode=1 storage_order=0"},
    Row{"AveragePool", "f1x3x7x7", "kernel_shape=2,3 auto_pad=SAME_LOWER count_include_pad=1"},
    Row{"Global*", "f2x3x4x5", ""},
    Row{"MaxUnpool", "f1x1x2x2 i1x1x2x2", "kernel_shape=2,2 strides=2,2"},
    Row{"MaxUnpool", "f1x1x2x2 i1x1x2x2 i[1,1,5,5]", "kernel_shape=2,2 strides=2,2 pads=0,0,0,0"},
    Row{"Col2Im", "f2x12x9 i[5,6] i[2,3]", "pads=0,1,1,0 strides=2,2 dilations=1,1"},
    Row{"Softmax", "f2x3x4", "axis=1"},
    Row{"LogSoftmax", "f2x3x4", "axis=-1"},
    Row{"Dropout", "f2x3", ""},
    Row{"Dropout", "f2x3 f(0.5) b", ""},
    Row{"BatchNormalization", "f2x3x4x5 f3 f3 f3 f3", "epsilon=0.001 momentum=0.9"},
    Row{"InstanceNormalization", "f2x3x4x5 f3 f3", "epsilon=0.001"},
    Row{"GroupNormalization", "f2x4x3x3 f4 f4", "num_groups=2 epsilon=0.001"},
    Row{"GroupNormalization", "f2x4x3x3 f2 f2", "num_groups=2"},
    Row{"LayerNormalization", "f2x3x4 f4 f4", "axis=-1 epsilon=0.001"},
    Row{"LayerNormalization", "f2x3x4 f3x4", "axis=1 stash_type=1"},
    Row{"MeanVarianceNormalization", "f2x3x4x5", "axes=0,2,3"},
    Row{"LpNormalization", "f2x3x4", "axis=1 p=2"},
    Row{"LRN", "f1x5x3x3", "size=3 alpha=0.001 beta=0.75 bias=1.0"},
    Row{"Gemm", "f3x4 f4x5 f5", "alpha=0.5 beta=2.0"},
    Row{"Gemm", "f4x3 f5x4", "transA=1 transB=1"},
    Row{"MatMul", "f2x3x4 f4x5", ""},
    Row{"MatMul", "f4 f7x4x2", ""},
    Row{"Reduce*", "f2x3x4", "axes=1, keepdims=1"},
    Row{"Reduce*", "f2x3x4 i[0,2]", "keepdims=0 noop_with_empty_axes=0"},
    Row{"Reduce*", "i[2,3,4]", "keepdims=0"},
    Row{"Arg*", "f2x3x4", "axis=1 keepdims=0 select_last_index=1"},
    Row{"Arg*", "f2x3x4", "axis=2"},
    Row{"Clip", "f2x3 f(0) f(6)", ""},
    Row{"Clip", "f2x3", "min=0.0 max=6.0"},
    Row{"PRelu", "f2x3x4 f3x1", ""},
    Row{"LeakyRelu", "f2x3", "alpha=0.1"},
    Row{"HardSigmoid", "f2x3", "alpha=0.1 beta=0.6"},
    Row{"Gelu", "f2x3", "approximate=tanh"},
    Row{"Shrink", "f2x3", "bias=0.1 lambd=0.5"},
    Row{"Where", "b2x3 f2x3 f3", ""},
    Row{"Where", "b3 i[1,2,3] i[4,5,6]", ""},
    Row{"Cast", "f2x3", "to=1"},
    Row{"Cast", "i[1,2,3]", "to=6"},
    Row{"CastLike", "f2x3 u1", ""},
    Row{"Mod", "f2x3 f3", "fmod=1"},
    Row{"Mod", "i[5,6,-7] i[3]", ""},
    Row{"And", "b2x3 b3", ""},
    Row{"Or", "b2x3 b2x3", ""},
    Row{"Xor", "b3 b2x3", ""},
    Row{"Not", "b2x3", ""},
    Row{"Sum", "f2x3 f3 f2x1", ""},
    Row{"Mean", "f2x3 f2x3", ""},
    Row{"Add", "f2x3 f3", ""},
    Row{"Add", "i[1,2,3] i[4]", ""},
    Row{"Sub", "i[1,2,3] i[4]", ""},
    Row{"Mul", "i[1,2,3] i[4]", ""},
    Row{"Div", "i[1,2,3] i[4]", ""},
    Row{"Div", "f2x3 f2x1", ""},
    Row{"Pow", "i[1,2,3] i[4]", ""},
    Row{"Pow", "f2x3 f(2)", ""},
    Row{"Min", "i[1,2,3] i[4]", ""},
    Row{"Max", "i[1,2,3] i[4]", ""},
    Row{"Neg", "i[1,2,3]", ""},
    Row{"Abs", "i[1,-2,3]", ""},
    Row{"Reshape", "f2x3x4 i[4,-1]", ""},
    Row{"Reshape", "f2x3x4 i[0,0,2,2]", "allowzero=0"},
    Row{"Flatten", "f2x3x4", "axis=2"},
    Row{"Squeeze", "f2x1x3 i[1]", ""},
    Row{"Squeeze", "f2x1x3", "axes=1,"},
    Row{"Unsqueeze", "f2x3 i[0,2]", ""},
    Row{"Unsqueeze", "f2x3", "axes=0,2"},
    Row{"Transpose", "f2x3x4", "perm=2,0,1"},
    Row{"Transpose", "f2x3x4x5", ""},
    Row{"Slice", "f4x6 i[0,1] i[3,6] i[0,1] i[1,2]", ""},
    Row{"Slice", "f4x6 i[-1] i[-5] i[1] i[-1]", ""},
    Row{"Slice", "f4x6", "starts=0,1 ends=3,6 axes=0,1"},
    Row{"Slice", "i[1,2,3,4] i[1] i[3] i[0]", ""},
    Row{"Split", "f6x2 i[2,4]", "axis=0"},
    Row{"Split", "f6x2", "split=2,4 axis=0"},
    Row{"Split", "f6x2", "axis=0"},
    Row{"Concat", "f2x3 f2x4 f2x3", "axis=1"},
    Row{"Concat", "i[1,2] i[3]", "axis=0"},
    Row{"Pad", "f2x3 i[0,1,0,1] f(0)", "mode=constant"},
    Row{"Pad", "f2x3 i[0,1,0,2]", "mode=reflect"},
    Row{"Pad", "f2x3 i[1,0] - i[1]", "mode=edge"},
    Row{"Pad", "f2x3", "pads=0,1,0,1 mode=constant value=1.0"},
    Row{"Expand", "f3x1 i[2,3,4]", ""},
    Row{"Expand", "i[3] i[4]", ""},
    Row{"Tile", "f2x3 i[2,1]", ""},
    Row{"DepthToSpace", "f1x8x2x2", "blocksize=2 mode=CRD"},
    Row{"SpaceToDepth", "f1x2x4x4", "blocksize=2"},
    Row{"Gather", "f4x3 i[0,2]", "axis=0"},
    Row{"Gather", "f4x3 i(1)", "axis=1"},
    Row{"Gather", "i[5,6,7] i[2,0]", "axis=0"},
    Row{"GatherElements", "f2x3 i2x3", "axis=1"},
    Row{"GatherND", "f2x3x4 i2x2", "batch_dims=0"},
    Row{"GatherND", "f2x3x4 i2x1", "batch_dims=1"},
    Row{"ScatterND", "f4x3 i2x1 f2x3", ""},
    Row{"ScatterElements", "f3x3 i2x3 f2x3", "axis=0"},
    Row{"Scatter", "f3x3 i2x3 f2x3", "axis=0"},
    Row{"ScatterND", "f4x3 i2x1 f2x3", "reduction=add"},
    Row{"ScatterElements", "f3x3 i2x3 f2x3", "axis=0 reduction=max"},
    Row{"Resize", "f1x2x3x4 - - i[1,2,6,8]", "mode=linear coordinate_transformation_mode=half_pixel"},
    Row{"Resize", "f1x2x3x4 - f[1,1,2,2]", "mode=nearest nearest_mode=floor"},
    Row{"Resize", "f1x2x3x4 f[0,0,0,0,1,1,1,1] - i[1,2,5,7]",
        "mode=cubic coordinate_transformation_mode=tf_crop_and_resize"},
    Row{"Resize", "f6 f[0.25,0.75] - i[5]", "mode=linear coordinate_transformation_mode=tf_crop_and_resize"},
    Row{"Resize", "f1x2x6x8 - - i[3,4]", "mode=linear antialias=1 axes=2,3 keep_aspect_ratio_policy=stretch"},
    Row{"Upsample", "f1x2x3x4 f[1,1,2,2]", "mode=nearest"},
    Row{"Upsample", "f1x2x3x4 f[1,1,2,3]", "mode=linear"},
    Row{"GridSample", "f1x2x3x4 f1x5x6x2", "mode=bilinear padding_mode=reflection align_corners=1"},
    Row{"GridSample", "f1x2x3x4x5 f1x2x3x2x3", "mode=nearest padding_mode=border"},
    Row{"AffineGrid", "f2x2x3 i[2,3,4,5]", "align_corners=1"},
    Row{"AffineGrid", "f2x3x4 i[2,3,4,5,6]", ""},
    Row{"Trilu", "f3x4 i(1)", "upper=0"},
    Row{"OneHot", "i[0,2,1] i(3) f[0,1]", "axis=-1"},
    Row{"OneHot", "i2x3 i[4] f[0,1]", "axis=0"},
    Row{"Hardmax", "f2x3x4", "axis=1"},
    Row{"EyeLike", "f3x4", "k=1 dtype=1"},
    Row{"CumSum", "f2x3 i(1)", "exclusive=0 reverse=1"},
    Row{"Einsum", "f2x3 f3x4", "equation=ij,jk->ik"},
    Row{"Einsum", "f2x3x4 f2x4x5 f5", "equation=bij,bjk,k->bi"},
    Row{"Einsum", "f3x3", "equation=ii->i"},
    Row{"LSTM", "f5x2x3 f2x16x3 f2x16x4 f2x32 j2 f2x2x4 f2x2x4 f2x12", "direction=bidirectional hidden_size=4"},
    Row{"GRU", "f5x2x3 f1x12x3 f1x12x4 f1x24", "linear_before_reset=1 layout=0"},
    Row{"RNN", "f2x5x3 f1x4x3 f1x4x4", "layout=1 direction=reverse"},
    Row{"NegativeLogLikelihoodLoss", "f3x5 i[0,1,4] f5", "reduction=mean ignore_index=-1"},
    Row{"NegativeLogLikelihoodLoss", "f3x5x2 i3x2", "reduction=none"},
    Row{"SoftmaxCrossEntropyLoss", "f3x5 i[0,1,4]", "reduction=sum"},
    Row{"DequantizeLinear", "u2x3 f(0.5) u", ""},
    Row{"DequantizeLinear", "u2x3 f3 u3", "axis=1"},
    Row{"QuantizeLinear", "f2x3 f(0.5) u", ""},
    Row{"QuantizeLinear", "f2x3 f3 u3", "axis=1"},
    Row{"DequantizeLinear", "u4x6 f2x6 u2x6", "axis=0 block_size=2"},
    Row{"QuantizeLinear", "f2x3 f(0.5)", "output_dtype=3"},
    Row{"DynamicQuantizeLinear", "f2x3", ""},
    Row{"ConvInteger", "u1x4x6x6 u8x4x3x3 u u8", "pads=1,1,1,1 group=1"},
    Row{"QLinearConv", "u1x4x6x6 f u u8x2x3x3 f8 u8 f u i8", "group=2 strides=2,1"},
    Row{"MatMulInteger", "u2x4x3 u2x3x5 u u", ""},
    Row{"QLinearMatMul", "u4x3 f u u3x5 f5 u5 f u", ""},
    Row{"Constant", "", "value_ints=1,2,3"},
    Row{"Constant", "", "value_int=7"},
    Row{"Constant", "", "value_float=0.5"},
    Row{"ConstantOfShape", "i[2,3]", ""},
    Row{"Range", "i(0) i(5) i(1)", ""},
    Row{"Range", "f(0) f(5) f(0.5)", ""},
    Row{"Shape", "f2x3x4", "start=0 end=2"},
    Row{"NonZero", "i[0,1,2]", ""},
    Row{"IsInf", "f2x3", "detect_negative=1 detect_positive=0"},
};

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

template <typename T>
T number_of(std::string_view text) {
  T number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Operand operand_of(std::string_view text) {
  using Kind = Operand::Kind;
  Operand operand;
  const char letter = text.front();
  operand.kind = letter == 'f'   ? Kind::reals
                 : letter == 'b' ? Kind::flags
                 : letter == 'u' ? Kind::bytes
                 : letter == 'i' ? Kind::integers
                                 : Kind::absent;
  text.remove_prefix(1);
  operand.is_list = text.starts_with('[') || text.starts_with('(');
  if (operand.is_list) {
    for (const std::string_view part : parts_of(text.substr(1, text.size() - 2), ',')) {
      operand.elements.push_back(number_of<double>(part));
    }
    if (text.starts_with('[')) operand.extents = {static_cast<int64_t>(operand.elements.size())};
  } else {
    for (const std::string_view part : parts_of(text, 'x')) operand.extents.push_back(number_of<int64_t>(part));
  }
  return operand;
}

AttributeForm attribute_of(std::string_view text) {
  const size_t equals = text.find('=');
  AttributeForm attribute{std::string(text.substr(0, equals)), {}};
  const std::string_view value = text.substr(equals + 1);
  if (value.find_first_not_of("-0123456789.,") != std::string_view::npos) {
    attribute.value = std::string(value);
  } else if (value.find(',') != std::string_view::npos) {
    std::vector<int64_t> values;
    for (const std::string_view part : parts_of(value, ',')) values.push_back(number_of<int64_t>(part));
    attribute.value = std::move(values);
  } else if (value.find('.') != std::string_view::npos) {
    attribute.value = number_of<float>(value);
  } else {
    attribute.value = number_of<int64_t>(value);
  }
  return attribute;
}

bool is_for(const Row& row, std::string_view operation) {
  const std::string_view name = row.operation;
  return name.ends_with('*') ? operation.starts_with(name.substr(0, name.size() - 1)) : operation == name;
}

}  // namespace

std::vector<NodeForm> forms_of(std::string_view operation, int inputs) {
  std::vector<NodeForm> forms;
  for (const Row& row : rows) {
    if (!is_for(row, operation)) continue;
    NodeForm& form = forms.emplace_back();
    for (const std::string_view part : parts_of(row.operands, ' ')) form.operands.push_back(operand_of(part));
    for (const std::string_view part : parts_of(row.attributes, ' ')) form.attributes.push_back(attribute_of(part));
  }
  if (forms.empty()) {
    const Operand operand{.kind = Operand::Kind::reals, .extents = {2, 3}};
    forms.push_back({std::vector<Operand>(static_cast<size_t>(inputs), operand), {}});
  }
  return forms;
}

}  // namespace kiln::fuzz
