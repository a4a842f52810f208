// Hostile models, read and lowered: docs/fuzzing.md.
#include "fuzz_driver.h"
#include "hostile_model.h"
#include "model_trial.h"

namespace kiln::fuzz {
namespace {

std::string model_of(std::string_view input) {
  Choices choices(input);
  return hostile_model(choices).SerializeAsString();
}

/// The model and the options that it is loaded with.
std::string run(const ModelTrial& trial, std::string_view input) {
  Choices choices(input);
  const std::string model = hostile_model(choices).SerializeAsString();
  return trial.run(model, choices);
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  constexpr std::size_t most_bytes = std::size_t{2} << 30;
  static const kiln::fuzz::ModelTrial trial;  // removed however the program ends
  return kiln::fuzz::fuzz_main(argc, argv,
                               {.name = "hostile",
                                .run = [](std::string_view input) { return kiln::fuzz::run(trial, input); },
                                .dictionary = {},
                                .made = true,
                                .most_bytes = most_bytes,
                                .product = kiln::fuzz::model_of});
}
