#include "descriptor/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kiln::descriptor {
namespace {

// Room for the idle threads of a last block and for a last vector.
constexpr int64_t narrow_limit = (int64_t{1} << 31) - (int64_t{1} << 20);

int scale_constant(Scale scale) {
  switch (scale) {
    case Scale::zero:
      return 0;
    case Scale::one:
      return 1;
    case Scale::any:
      return 2;
  }
  return 2;
}

}  // namespace

bool needs_wide_index(std::initializer_list<const TensorSpec*> specs) {
  return std::any_of(specs.begin(), specs.end(), [](const TensorSpec* spec) {
    return spec->span() >= narrow_limit || spec->elements() >= narrow_limit;
  });
}

void add_strides(Prelude& prelude, std::string_view name, std::string_view letters, const TensorSpec& spec) {
  for (size_t i = 0; i < letters.size(); ++i) {
    prelude.constant(fmt::format("{}_STRIDE_{}", name, letters[i]), spec.strides.at(i));
  }
}

void add_blend(Prelude& prelude, const Blend& blend) {
  prelude.constant("ALPHA", scale_constant(blend.alpha)).constant("BETA", scale_constant(blend.beta));
}

void add_batch(Prelude& prelude, int64_t n, bool dynamic) {
  prelude.constant("N", n).flag("DYNAMIC_N", dynamic);
}

Count blocks_for(int64_t per_image, int64_t n, bool dynamic, int64_t per_block) {
  if (dynamic) return Count{0, per_image, per_block};
  return Count{(per_image * n + per_block - 1) / per_block, 0, 1};
}

Launch unary_launch(std::string entry, int threads) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(threads);
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}, Scalar::alpha, Scalar::beta, Scalar::n};
  return launch;
}

double mean_taps_inside(int64_t outputs, int64_t extent, int64_t window, int64_t pad, int64_t stride,
                        int64_t dilation) {
  // Outputs are sampled: images may be large.
  constexpr int64_t samples = 64;
  const int64_t step = std::max<int64_t>(1, outputs / samples);
  double taps = 0, windows = 0;
  for (int64_t o = 0; o < outputs; o += step) {
    const int64_t start = o * stride - pad;
    const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    const int64_t last = extent - 1 - start < 0 ? -1 : std::min(window - 1, (extent - 1 - start) / dilation);
    taps += static_cast<double>(std::max<int64_t>(0, last - first + 1));
    windows += 1;
  }
  return windows > 0 ? taps / windows : 0;
}

bool vector_fits(const TensorSpec& spec, int dimension, int64_t elements) {
  if (elements == 1) return true;
  const auto along = static_cast<size_t>(dimension);
  const int64_t bytes = size_of(spec.dtype);
  const int64_t access = std::min<int64_t>(16, elements * bytes);
  if (spec.extents[along] % elements != 0 || spec.alignment % access != 0) return false;
  for (size_t i = 0; i < spec.strides.size(); ++i) {
    if (spec.extents[i] <= 1) continue;
    if (i == along ? spec.strides[i] != 1 : spec.strides[i] * bytes % access != 0) return false;
  }
  return true;
}

int widest_vector(const TensorSpec& spec, int dimension, int most) {
  int width = 1;
  while (width * 2 <= most && vector_fits(spec, dimension, width * 2)) width *= 2;
  return width;
}

}  // namespace kiln::descriptor
