#include "lenet.h"

#include <kiln/activation.h>
#include <kiln/base/error.h>
#include <kiln/conv.h>
#include <kiln/gemm.h>
#include <kiln/loss.h>
#include <kiln/pool.h>
#include <kiln/tensor_ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

namespace {

// The filters K,C,R,S of each layer. A fully connected layer on images is a filter of their size.
constexpr std::array<std::array<int64_t, 4>, 5> shapes = {
    {{6, 1, 5, 5}, {16, 6, 5, 5}, {120, 16, 5, 5}, {84, 120, 1, 1}, {10, 84, 1, 1}}};

int64_t inputs(size_t layer) {
  return shapes[layer][1] * shapes[layer][2] * shapes[layer][3];
}

// Parameters begin at multiples of 256 bytes, so that every kernel may load vectors.
int64_t rounded(int64_t count) {
  return (count + 63) / 64 * 64;
}

struct Place {
  int64_t w, b;  // elements from the start of the row
};

Place place(size_t layer) {
  int64_t begin = 0;
  for (size_t i = 0; i < layer; ++i) begin += rounded(shapes[i][0] * inputs(i)) + rounded(shapes[i][0]);
  return {begin, begin + rounded(shapes[layer][0] * inputs(layer))};
}

int64_t all_parameters() {
  return place(shapes.size() - 1).b + rounded(shapes.back()[0]);
}

const float* at(const kiln::Tensor& row, int64_t element) {
  return static_cast<const float*>(row.data()) + element;
}

const kiln::PoolOptions halving{.mode = kiln::PoolMode::max, .window = {2, 2}, .stride = {2, 2}};
const kiln::ActivationOptions relu{.mode = kiln::ActivationMode::relu};

template <typename T>
void upload(kiln::DeviceMemory& memory, const std::vector<T>& values) {
  memory.upload(std::as_bytes(std::span(values)));
}

std::vector<float> download(const kiln::DeviceMemory& memory) {
  std::vector<float> values(memory.size() / sizeof(float));
  memory.download(std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

Buffer::Buffer(kiln::Context& context, kiln::DType dtype, std::initializer_list<int64_t> extents)
    : memory(context, std::accumulate(extents.begin(), extents.end(), size_t{4}, std::multiplies<>())),
      tensor(memory.data(), dtype, extents, kiln::contiguous) {}

ConvLayer::ConvLayer(kiln::Context& context, const Parameters& parameters, int64_t batch, int64_t side)
    : context_(context),
      parameters_(parameters),
      convolved_(context, kiln::f32, {batch, parameters.w.extent(0), side - 4, side - 4}),
      dconvolved_(context, kiln::f32, {batch, parameters.w.extent(0), side - 4, side - 4}),
      pooled_(context, kiln::f32, {batch, parameters.w.extent(0), (side - 4) / 2, (side - 4) / 2}),
      dpooled_(context, kiln::f32, {batch, parameters.w.extent(0), (side - 4) / 2, (side - 4) / 2}),
      maxima_(context, kiln::i32, {batch, parameters.w.extent(0), (side - 4) / 2, (side - 4) / 2}) {}

const kiln::Tensor& ConvLayer::forward(const kiln::Tensor& x) {
  kiln::conv_forward(context_, x, parameters_.w, convolved_.tensor,
                     {.epilogue = kiln::bias(parameters_.b) + kiln::relu});
  kiln::pool_forward(context_, convolved_.tensor, pooled_.tensor, maxima_.tensor, halving);
  return pooled_.tensor;
}

void ConvLayer::backward(const kiln::Tensor& x, const kiln::Tensor* dx) {
  const kiln::Tensor& d = dconvolved_.tensor;
  kiln::pool_backward_from_indices(context_, dpooled_.tensor, maxima_.tensor, d, halving);
  kiln::activation_backward_from_y(context_, convolved_.tensor, d, d, relu);
  kiln::conv_backward_filter(context_, x, d, parameters_.dw);
  kiln::conv_backward_bias(context_, d, parameters_.db);
  if (dx != nullptr) kiln::conv_backward_data(context_, d, parameters_.w, *dx);
}

FullLayer::FullLayer(kiln::Context& context, const Parameters& parameters, int64_t batch, Activation activation)
    : context_(context),
      parameters_(parameters),
      activation_(activation),
      y_(context, kiln::f32, {batch, parameters.w.extent(0)}),
      dy_(context, kiln::f32, {batch, parameters.w.extent(0)}) {}

const kiln::Tensor& FullLayer::forward(const kiln::Tensor& x) {
  kiln::Epilogue epilogue = kiln::bias(parameters_.b);
  if (activation_ == Activation::relu) epilogue = epilogue + kiln::relu;
  kiln::fully_connected_forward(context_, x, parameters_.w, y_.tensor, {.epilogue = epilogue});
  return y_.tensor;
}

void FullLayer::backward(const kiln::Tensor& x, const kiln::Tensor& dx) {
  const kiln::Tensor& d = dy_.tensor;
  if (activation_ == Activation::relu) kiln::activation_backward_from_y(context_, y_.tensor, d, d, relu);
  kiln::fully_connected_backward_weights(context_, x, d, parameters_.dw);
  kiln::fully_connected_backward_bias(context_, d, parameters_.db);
  kiln::fully_connected_backward_data(context_, d, parameters_.w, dx);
}

LeNet::LeNet(kiln::Context& context, int batch, uint64_t seed)
    : context_(context),
      batch_(batch),
      weights_(context, kiln::f32, {all_parameters()}),
      gradients_(context, kiln::f32, {all_parameters()}),
      images_(context, kiln::f32, {batch, 1, 32, 32}),
      labels_(context, kiln::i32, {batch}),
      loss_(context, kiln::f32, {1}),
      conv1_(context, parameters(0), batch, 32),
      conv2_(context, parameters(1), batch, 14),
      full3_(context, parameters(2), batch, FullLayer::Activation::relu),
      full4_(context, parameters(3), batch, FullLayer::Activation::relu),
      full5_(context, parameters(4), batch, FullLayer::Activation::none) {
  kiln::tensor_set(context, gradients_.tensor, 0);  // what lies between parameters stays so
  draw_weights(seed);
}

Parameters LeNet::parameters(size_t layer) const {
  const std::array<int64_t, 4>& extents = shapes[layer];
  const size_t rank = extents[2] == 1 ? 2 : 4;
  const Place begin = place(layer);
  const auto filters = [&](const kiln::Tensor& row) {
    return kiln::Tensor(at(row, begin.w), kiln::f32, std::span(extents).first(rank), kiln::contiguous);
  };
  const auto biases = [&](const kiln::Tensor& row) {
    return kiln::Tensor(at(row, begin.b), kiln::f32, {extents[0]}, kiln::contiguous);
  };
  return {filters(weights_.tensor), biases(weights_.tensor), filters(gradients_.tensor), biases(gradients_.tensor)};
}

void LeNet::draw_weights(uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(all_parameters()));
  for (size_t layer = 0; layer < shapes.size(); ++layer) {
    const auto limit = static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs(layer))));
    const auto draw = [&](int64_t begin, int64_t count) {
      std::generate_n(values.begin() + begin, count, [&] { return (2 * random.uniform() - 1) * limit; });
    };
    draw(place(layer).w, shapes[layer][0] * inputs(layer));
    draw(place(layer).b, shapes[layer][0]);
  }
  upload(weights_.memory, values);
}

float LeNet::loss_and_gradients(const Batch& batch) {
  forward(batch);
  backward();
  return download(loss_.memory).front();
}

std::vector<int> LeNet::classify(const Batch& batch) {
  forward(batch);
  const std::vector<float> logits = download(full5_.y_memory());
  std::vector<int> digits;
  for (auto image = logits.begin(); image != logits.end(); image += 10) {
    digits.push_back(static_cast<int>(std::max_element(image, image + 10) - image));
  }
  return digits;
}

void LeNet::forward(const Batch& batch) {
  if (batch.labels.size() != static_cast<size_t>(batch_)) {
    throw kiln::Error(kiln::ErrorCode::invalid_argument, "the batch has another size than the network was made for");
  }
  upload(images_.memory, batch.images);
  upload(labels_.memory, batch.labels);
  const kiln::Tensor& image_features = conv2_.forward(conv1_.forward(images_.tensor));
  full5_.forward(full4_.forward(full3_.forward(image_features)));
  kiln::cross_entropy_forward(context_, full5_.y(), labels_.tensor, loss_.tensor);
}

void LeNet::backward() {
  kiln::cross_entropy_backward(context_, full5_.y(), labels_.tensor, full5_.dy());
  full5_.backward(full4_.y(), full4_.dy());
  full4_.backward(full3_.y(), full3_.dy());
  full3_.backward(conv2_.y(), conv2_.dy());
  conv2_.backward(conv1_.y(), &conv1_.dy());
  conv1_.backward(images_.tensor, nullptr);
}
