// The training example as a program: its arguments, and what it prints.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "kernel_folder.h"

namespace kiln::train_lenet_program_test {
namespace {

struct Outcome {
  int exit_code;
  std::string output;  // both streams
};

// Runs a command with the program in place of "PROGRAM".
Outcome run(std::string command) {
  setenv("KILN_CACHE", "off", 1);
  setenv("KILN_KERNEL_STORE", kiln::testing_support::kernel_folder().c_str(), 1);
  command.replace(command.find("PROGRAM"), 7, KILN_TRAIN_LENET);
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  std::array<char, 4096> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), pipe)) outcome.output.append(part.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return outcome;
}

// Number behind `before` in the output.
double number_behind(const Outcome& outcome, const std::string& before) {
  const size_t at = outcome.output.find(before);
  EXPECT_NE(at, std::string::npos) << before << " is not in " << outcome.output;
  return at == std::string::npos ? -1 : std::atof(outcome.output.c_str() + at + before.size());
}

// Mean loss with Adam of the first `steps` by PyTorch.
double mean_by_pytorch(int steps) {
  std::ifstream file(KILN_LENET_TABLE);
  double sum = 0;
  int count = 0;
  for (std::string line; count < steps && std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    double step = 0, sgd = 0, adam = 0;
    std::istringstream(line) >> step >> sgd >> adam;
    sum += adam;
    ++count;
  }
  EXPECT_EQ(count, steps);
  return sum / steps;
}

TEST(TrainLeNetProgram, PrintsTheMeanLossOfFiftyStepsAndTheAccuracy) {
  const Outcome outcome = run("KILN_EMULATOR_CHECK=off PROGRAM 52 adam");  // train_lenet_test.cpp checks its kernels
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NEAR(number_behind(outcome, "step   50: loss "), mean_by_pytorch(50), 2e-3);
  EXPECT_EQ(outcome.output.find("step   52"), std::string::npos);
  // By chance one digit in ten is right.
  const double accuracy = number_behind(outcome, "accuracy on 500 digits that it never saw: ");
  EXPECT_GT(accuracy, 30);
  EXPECT_LT(accuracy, 80);
}

TEST(TrainLeNetProgram, SaysHowItIsUsed) {
  for (const char* arguments : {"0", "-1", "many", "5 rmsprop", "5 sgd more", "5 adam more", "5 ''"}) {
    const Outcome outcome = run(std::string("PROGRAM ") + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.output, "usage: example_train_lenet [STEPS [sgd|adam]]\n") << arguments;
  }
}

// It trains until it is ended.
TEST(TrainLeNetProgram, NeedsNoArguments) {
  const Outcome outcome = run("timeout 3 PROGRAM");
  EXPECT_EQ(outcome.exit_code, 124) << outcome.output;
}

TEST(TrainLeNetProgram, SaysWhatIsMissing) {
  const Outcome outcome = run("KILN_DRIVER=/nowhere/libcuda.so PROGRAM 1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("/nowhere/libcuda.so"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace kiln::train_lenet_program_test
