// The training example against the same loop in PyTorch: same weights, same batches, so the same losses.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "digits.h"
#include "kernel_folder.h"
#include "lenet.h"
#include "optimizers.h"

namespace kiln::train_lenet_test {
namespace {

// lenet_torch.txt: what examples/train_lenet/lenet_torch.py wrote.
struct Losses {
  std::vector<double> sgd, adam;
};

Losses by_pytorch() {
  Losses losses;
  std::ifstream file(KILN_LENET_TABLE);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream numbers(line);
    int step = 0;
    double sgd = 0, adam = 0;
    numbers >> step >> sgd >> adam;
    losses.sgd.push_back(sgd);
    losses.adam.push_back(adam);
  }
  return losses;
}

// Nothing of the person who runs the test is read or written.
kiln::ContextOptions without_files() {
  kiln::ContextOptions options;
  options.cache = "off";
  options.kernel_store = kiln::testing_support::kernel_folder();
  return options;
}

class TrainLeNet : public testing::Test {
 protected:
  std::vector<double> losses(size_t steps, const std::function<void()>& update) {
    Digits digits(2);
    std::vector<double> found;
    for (size_t step = 0; step < steps; ++step) {
      found.push_back(net.loss_and_gradients(digits.next(4)));
      update();
    }
    return found;
  }

  kiln::Context context{without_files()};
  LeNet net{context, 4, 1};
};

// Rounding to f32 in each layer moves a loss by some 1e-6, and what the weights have gathered of it grows from step to
// step, since a maximum or a ReLU that tips over sends a gradient elsewhere.
void expect_equal_losses(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_LE(found.size(), expected.size());
  for (size_t step = 0; step < found.size(); ++step) {
    EXPECT_NEAR(found[step], expected[step], 1e-5 * expected[step]) << "step " << step;
  }
}

double mean_of_ten(const std::vector<double>& values, size_t begin) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::accumulate(first, first + 10, 0.0) / 10;
}

TEST_F(TrainLeNet, LossesWithMomentumFallAsThoseOfPyTorchDo) {
  const std::vector<double> expected = by_pytorch().sgd;
  ASSERT_EQ(expected.size(), 60u);
  Sgd sgd(context, net.weights(), net.gradients(), 0.001f, 0.9f);
  const std::vector<double> found = losses(expected.size(), [&] { sgd.step(); });
  expect_equal_losses(found, expected);
  EXPECT_LT(mean_of_ten(found, 50), 0.8 * mean_of_ten(found, 0));
}

TEST_F(TrainLeNet, LossesWithAdamAreThoseOfPyTorch) {
  Adam adam(context, net.weights(), net.gradients(), 0.001f);
  expect_equal_losses(losses(20, [&] { adam.step(); }), by_pytorch().adam);
}

TEST_F(TrainLeNet, NamesTheLikeliestDigit) {
  Sgd sgd(context, net.weights(), net.gradients(), 0.01f, 0.9f);
  Digits digits(2);
  const Batch batch = digits.next(4);
  for (int step = 0; step < 20; ++step) {
    net.loss_and_gradients(batch);
    sgd.step();
  }
  EXPECT_EQ(net.classify(batch), std::vector<int>(batch.labels.begin(), batch.labels.end()));
}

}  // namespace
}  // namespace kiln::train_lenet_test
