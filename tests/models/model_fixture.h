// Whole models on the emulated device, for tests: arrays, a Context, and a small network with its oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/context.h"
#include "kiln/model.h"
#include "kiln/models/host_run.h"
#include "onnx_model.h"

namespace kiln::test {

template <class T>
models::HostArray array(const std::string& type, std::vector<int64_t> extents, const std::vector<T>& values) {
  models::HostArray result{type, std::move(extents), std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

models::HostArray floats(std::vector<int64_t> extents, const std::vector<float>& values);

template <class T = float>
std::vector<T> values_of(const models::HostArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

/// Between -1 and 1.
std::vector<float> random_values(size_t count, unsigned seed);

/// With a Context without a database.
class ModelTest : public testing::Test {
 protected:
  explicit ModelTest(const ContextOptions& how = options()) : context_(how) {}

  static ContextOptions options();
  Model load(const OnnxModel& model, const ModelOptions& how = {});
  /// Loads a file that stays: other batches and sizes read it again.
  Model open(const OnnxModel& model, const ModelOptions& how = {});
  std::vector<models::HostArray> run(const OnnxModel& model, const std::vector<models::HostArray>& inputs,
                                     const ModelOptions& how = {});
  void expect_refused(const OnnxModel& model, ErrorCode code, const std::string& text);

  Context context_;
  std::vector<std::unique_ptr<TemporaryFile>> files_;  ///< Models of open().
};

/// conv 3x3 -> BatchNormalization -> Relu -> Concat with the input -> 1x1 conv -> HardSwish by hand -> mean -> Gemm:
/// x, Nx3x7x5, to y, Nx2.
OnnxModel small_network();
/// The same by plain loops in double.
std::vector<double> small_network_of(std::span<const float> x, int64_t batch);

}  // namespace kiln::test
