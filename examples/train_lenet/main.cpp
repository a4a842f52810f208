// Trains LeNet on generated digits, every layer by Kiln: `example_train_lenet [STEPS [sgd|adam]]`.
#include <kiln/base/error.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>

#include "digits.h"
#include "lenet.h"
#include "optimizers.h"

namespace {

constexpr int batch = 4, test_batches = 125;

// How many of 500 digits that it never saw the network names rightly, in percent.
double accuracy(LeNet& net) {
  Digits digits(3);
  int right = 0;
  for (int i = 0; i < test_batches; ++i) {
    const Batch test = digits.next(batch);
    const std::vector<int> named = net.classify(test);
    for (size_t image = 0; image < named.size(); ++image) right += named[image] == test.labels[image] ? 1 : 0;
  }
  return 100.0 * right / (batch * test_batches);
}

int run(int steps, std::string_view optimizer) {
  kiln::Context context;
  std::printf("%s\n", context.device_description().c_str());
  LeNet net(context, batch, 1);
  std::optional<Sgd> sgd;
  std::optional<Adam> adam;
  std::function<void()> update;
  if (optimizer == "adam") {
    adam.emplace(context, net.weights(), net.gradients(), 0.001f);
    update = [&] { adam->step(); };
  } else {
    sgd.emplace(context, net.weights(), net.gradients(), 0.001f, 0.9f);
    update = [&] { sgd->step(); };
  }

  Digits digits(2);
  double sum = 0;
  for (int step = 1; step <= steps; ++step) {
    sum += net.loss_and_gradients(digits.next(batch));
    update();
    if (step % 50 == 0) {
      std::printf("step %4d: loss %.4f\n", step, sum / 50);
      sum = 0;
    }
  }
  std::printf("accuracy on %d digits that it never saw: %.1f %%\n", batch * test_batches, accuracy(net));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 500;
  const std::string_view optimizer = argc > 2 ? argv[2] : "sgd";
  if (steps < 1 || argc > 3 || (optimizer != "sgd" && optimizer != "adam")) {
    std::fprintf(stderr, "usage: example_train_lenet [STEPS [sgd|adam]]\n");
    return 2;
  }
  try {
    return run(steps, optimizer);
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), error.hint().c_str());
    return 1;
  }
}
