#include "model_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/base/error.h"
#include "test_environment.h"

namespace kiln::test {

using models::HostArray;
using testing::HasSubstr;

namespace {

/// The same by plain loops in double, for one image.
class SmallNetwork {
 public:
  std::array<double, 2> operator()(std::span<const float> x) const {
    std::array<double, 6> pooled{};
    for (int64_t h = 0; h < 7; ++h) {
      for (int64_t w = 0; w < 5; ++w) {
        const std::array<double, 7> channels = first_block(x, h, w);
        for (size_t k = 0; k < 6; ++k) {
          double sum = at(b2_, k);
          for (size_t c = 0; c < 7; ++c) sum += channels[c] * at(w2_, k * 7 + c);
          pooled[k] += sum * std::clamp(0.2 * sum + 0.5, 0.0, 1.0) / 35;
        }
      }
    }
    std::array<double, 2> y{at(b3_, 0), at(b3_, 1)};
    for (size_t k = 0; k < 6; ++k) {
      for (size_t j = 0; j < 2; ++j) y[j] += pooled[k] * at(w3_, k * 2 + j);
    }
    return y;
  }

 private:
  static double at(std::span<const float> values, size_t i) { return static_cast<double>(values[i]); }
  static double pixel(std::span<const float> x, int64_t c, int64_t h, int64_t w) {
    const bool inside = h >= 0 && h < 7 && w >= 0 && w < 5;
    return inside ? at(x, static_cast<size_t>((c * 7 + h) * 5 + w)) : 0;
  }

  double convolved(std::span<const float> x, int64_t k, int64_t h, int64_t w) const {
    double sum = 0;
    for (int64_t i = 0; i < 27; ++i) {
      const int64_t c = i / 9, r = i / 3 % 3, s = i % 3;
      sum += pixel(x, c, h + r - 1, w + s - 1) * at(w1_, static_cast<size_t>(k * 27 + i));
    }
    return sum;
  }

  /// Behind the Concat: four channels of the convolution, three of the input.
  std::array<double, 7> first_block(std::span<const float> x, int64_t h, int64_t w) const {
    constexpr std::array variance = {0.5, 1.0, 2.0, 0.25};
    std::array<double, 7> channels{};
    for (size_t k = 0; k < 4; ++k) {
      const double sum = convolved(x, static_cast<int64_t>(k), h, w);
      const double normalised = (sum - at(mean_, k)) / std::sqrt(variance[k] + 1e-5);
      channels[k] = std::max(0.0, normalised * at(scale_, k) + at(shift_, k));
    }
    for (size_t c = 0; c < 3; ++c) channels[4 + c] = pixel(x, static_cast<int64_t>(c), h, w);
    return channels;
  }

  const std::vector<float> w1_ = random_values(108, 1), scale_ = random_values(4, 2), shift_ = random_values(4, 3),
                           mean_ = random_values(4, 4), w2_ = random_values(42, 5), b2_ = random_values(6, 6),
                           w3_ = random_values(12, 7), b3_ = random_values(2, 8);
};

}  // namespace

HostArray floats(std::vector<int64_t> extents, const std::vector<float>& values) {
  return array("float", std::move(extents), values);
}

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

ContextOptions ModelTest::options() {
  Environment environment = testing_support::test_environment();
  if (!environment.driver) environment.driver = "emulator";
  ContextOptions result;
  result.environment = environment;
  return result;
}

Model ModelTest::load(const OnnxModel& model, const ModelOptions& how) {
  const TemporaryFile file(model.bytes());
  return {context_, file.path(), how};
}

Model ModelTest::open(const OnnxModel& model, const ModelOptions& how) {
  files_.push_back(std::make_unique<TemporaryFile>(model.bytes()));
  return {context_, files_.back()->path(), how};
}

std::vector<HostArray> ModelTest::run(const OnnxModel& model, const std::vector<HostArray>& inputs,
                                      const ModelOptions& how) {
  Model loaded = load(model, how);
  return models::run_on_host(context_, loaded, inputs);
}

void ModelTest::expect_refused(const OnnxModel& model, ErrorCode code, const std::string& text) {
  try {
    (void)load(model);
    ADD_FAILURE() << "loaded, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

OnnxModel small_network() {
  OnnxModel model(13);
  model.input("x", {"N", 3, 7, 5});
  model.weights("w1", {4, 3, 3, 3}, random_values(108, 1));
  model.weights("scale", {4}, random_values(4, 2));
  model.weights("shift", {4}, random_values(4, 3));
  model.weights("mean", {4}, random_values(4, 4));
  model.weights("variance", {4}, {0.5F, 1, 2, 0.25F});
  model.weights("w2", {6, 7, 1, 1}, random_values(42, 5));
  model.weights("b2", {6}, random_values(6, 6));
  model.weights("w3", {6, 2}, random_values(12, 7));
  model.weights("b3", {2}, random_values(2, 8));
  model.node("Conv", {"x", "w1"}, {"c1"}, {{"pads", Ints{1, 1, 1, 1}}});
  model.node("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, {"n1"});
  model.node("Relu", {"n1"}, {"r1"});
  model.node("Concat", {"r1", "x"}, {"k"}, {{"axis", int64_t{1}}});
  model.node("Conv", {"k", "w2", "b2"}, {"c2"});
  model.node("HardSigmoid", {"c2"}, {"g"});
  model.node("Mul", {"c2", "g"}, {"h"});
  model.node("GlobalAveragePool", {"h"}, {"p"});
  model.node("Flatten", {"p"}, {"f"});
  model.node("Gemm", {"f", "w3", "b3"}, {"y"});
  model.output("y");
  return model;
}

std::vector<double> small_network_of(std::span<const float> x, int64_t batch) {
  const SmallNetwork network;
  std::vector<double> result;
  for (size_t n = 0; n < static_cast<size_t>(batch); ++n) {
    const std::array<double, 2> y = network(x.subspan(n * 105, 105));
    result.insert(result.end(), y.begin(), y.end());
  }
  return result;
}

}  // namespace kiln::test
