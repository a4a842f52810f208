// One convolution by the C++ API: 3 -> 64 channels, 3x3, pad 1, on a 224x224 image, with bias and ReLU.
#include <kiln/base/error.h>
#include <kiln/conv.h>
#include <kiln/memory.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace {

std::vector<float> wave(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i));
  return values;
}

kiln::DeviceMemory on_device(kiln::Context& context, const std::vector<float>& values) {
  kiln::DeviceMemory memory(context, values.size() * sizeof(float));
  memory.upload(std::as_bytes(std::span(values)));
  return memory;
}

size_t index(int outer, int extent, int inner) {
  return static_cast<size_t>(outer) * static_cast<size_t>(extent) + static_cast<size_t>(inner);
}

// Output (k, p, q), computed here to see that the device agrees.
double expected(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b, int k, int p,
                int q) {
  double sum = b[static_cast<size_t>(k)];
  for (int c = 0; c < 3; ++c) {
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        const int row = p - 1 + r, column = q - 1 + s;
        if (row < 0 || row >= 224 || column < 0 || column >= 224) continue;
        sum += double{x[index(c * 224 + row, 224, column)]} * w[index((k * 3 + c) * 3 + r, 3, s)];
      }
    }
  }
  return std::max(sum, 0.0);
}

int run() {
  kiln::Context context;
  std::printf("%s\n", context.device_description().c_str());

  const std::vector<float> x_host = wave(3 * 224 * 224, 0.37f), w_host = wave(64 * 27, 0.71f), b_host = wave(64, 1.3f);
  const kiln::DeviceMemory x_memory = on_device(context, x_host), w_memory = on_device(context, w_host);
  const kiln::DeviceMemory b_memory = on_device(context, b_host);
  const kiln::DeviceMemory y_memory(context, size_t{64} * 224 * 224 * sizeof(float));

  const kiln::Tensor x(x_memory.data(), kiln::f32, {1, 3, 224, 224}, kiln::nchw);
  const kiln::Tensor w(w_memory.data(), kiln::f32, {64, 3, 3, 3}, kiln::nchw);
  const kiln::Tensor b(b_memory.data(), kiln::f32, {64}, kiln::contiguous);
  const kiln::Tensor y(y_memory.data(), kiln::f32, {1, 64, 224, 224}, kiln::nchw);

  // The one-line way. The first call of a shape compiles; later ones find their plan in a fraction of a microsecond.
  kiln::conv_forward(context, x, w, y, {.pad = {1, 1}, .epilogue = kiln::bias(b) + kiln::relu});

  std::vector<float> y_host(64 * 224 * 224);
  y_memory.download(std::as_writable_bytes(std::span(y_host)));
  double largest_error = 0;
  for (int k = 0; k < 64; k += 9) {
    for (int position : {0, 5, 111, 223}) {
      const float got = y_host[index(k * 224 + position, 224, 223 - position)];
      largest_error =
          std::max(largest_error, std::abs(got - expected(x_host, w_host, b_host, k, position, 223 - position)));
    }
  }
  std::printf("largest error of the sampled outputs: %.2g\n", largest_error);

  // The way for loops and CUDA graphs: a Plan does no look-up and no allocation.
  const kiln::Plan plan = context.plan(
      kiln::Request::parse("conv_forward x=f32:1x3x224x224:nchw w=f32:64x3x3x3:nchw pad=1 epilogue=bias+relu"));
  const kiln::DeviceMemory workspace(context, static_cast<size_t>(plan.workspace_bytes()));
  plan.run(nullptr, {x, w, y, b}, workspace.data());
  std::printf("plan: %s (%s), %lld bytes of workspace\n", plan.variant().c_str(), plan.source().c_str(),
              static_cast<long long>(plan.workspace_bytes()));
  return largest_error < 1e-4 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
