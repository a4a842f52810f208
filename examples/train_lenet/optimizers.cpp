#include "optimizers.h"

#include <kiln/activation.h>
#include <kiln/tensor_ops.h>

#include <cmath>
#include <initializer_list>

namespace {

kiln::Tensor zeros(kiln::Context& context, const kiln::DeviceMemory& memory, int64_t count) {
  kiln::Tensor tensor(memory.data(), kiln::f32, {count}, kiln::contiguous);
  kiln::tensor_set(context, tensor, 0);
  return tensor;
}

size_t bytes(const kiln::Tensor& tensor) {
  return static_cast<size_t>(tensor.extent(0)) * sizeof(float);
}

// values = code(values), where the code calls them acc.
void update(kiln::Context& context, const kiln::Tensor& values, const kiln::Expression& code,
            std::initializer_list<kiln::NamedTensor> tensors, std::initializer_list<kiln::NamedScalar> scalars) {
  kiln::activation_forward(
      context, values, values,
      {.mode = kiln::ActivationMode::identity, .epilogue = kiln::expression(code, tensors, scalars)});
}

}  // namespace

Sgd::Sgd(kiln::Context& context, const kiln::Tensor& weights, const kiln::Tensor& gradients, float rate, float momentum)
    : context_(context),
      weights_(weights),
      gradients_(gradients),
      velocity_memory_(context, bytes(weights)),
      velocity_(zeros(context, velocity_memory_, weights.extent(0))),
      rate_(rate),
      momentum_(momentum) {}

void Sgd::step() {
  static const kiln::Expression accelerate("momentum * acc + gradient", {"gradient"}, {"momentum"});
  static const kiln::Expression move("acc - rate * velocity", {"velocity"}, {"rate"});
  update(context_, velocity_, accelerate, {{"gradient", gradients_}}, {{"momentum", momentum_}});
  update(context_, weights_, move, {{"velocity", velocity_}}, {{"rate", rate_}});
}

Adam::Adam(kiln::Context& context, const kiln::Tensor& weights, const kiln::Tensor& gradients, float rate)
    : context_(context),
      weights_(weights),
      gradients_(gradients),
      mean_memory_(context, bytes(weights)),
      square_memory_(context, bytes(weights)),
      mean_(zeros(context, mean_memory_, weights.extent(0))),
      square_(zeros(context, square_memory_, weights.extent(0))),
      rate_(rate) {}

void Adam::step() {
  static const kiln::Expression mean("acc + (1.0f - decay) * (gradient - acc)", {"gradient"}, {"decay"});
  static const kiln::Expression square("acc + (1.0f - decay) * (gradient * gradient - acc)", {"gradient"}, {"decay"});
  static const kiln::Expression move("acc - rate * mean / (sqrtf(square) * unbias + 1e-8f)", {"mean", "square"},
                                     {"rate", "unbias"});
  constexpr float mean_decay = 0.9f, square_decay = 0.999f;
  ++steps_;
  // Both means begin at zero, and are too small by these factors.
  const double mean_part = 1 - std::pow(double{mean_decay}, steps_);
  const double square_part = 1 - std::pow(double{square_decay}, steps_);
  update(context_, mean_, mean, {{"gradient", gradients_}}, {{"decay", mean_decay}});
  update(context_, square_, square, {{"gradient", gradients_}}, {{"decay", square_decay}});
  update(context_, weights_, move, {{"mean", mean_}, {"square", square_}},
         {{"rate", static_cast<float>(rate_ / mean_part)}, {"unbias", static_cast<float>(1 / std::sqrt(square_part))}});
}
