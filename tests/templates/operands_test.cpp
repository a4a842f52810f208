// One operand after the other, the optional ones too, made the only one that is poorly aligned, oddly strided or beyond
// 32 bits: whatever a kernel may assume of all its operands it must have asked of each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/generator/operation.h"
#include "operand_changes.h"
#include "request_suites.h"
#include "variant_check.h"

namespace kiln::testing_support::operands_test {
namespace {

// Calls `use(algorithm, config)` for the default of every algorithm that serves `request`.
template <class Use>
void for_each_default(const Request& request, const Target& target, const Use& use) {
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (const auto config = algorithm.on(request, target).first_legal()) use(algorithm, *config);
  }
}

// The program, its sources without the comments that say which request they are for.
Program program_of(const Algorithm& algorithm, const Request& request, const Target& target, const Config& config) {
  Program program = algorithm.on(request, target).program(built_in_catalogue().library(), config);
  for (Source& source : program.sources) {
    while (source.code.starts_with("//")) source.code.erase(0, source.code.find('\n') + 1);
  }
  return program;
}

TEST(EveryOperand, IsInTheRequestsOfTheseTests) {
  std::map<std::string, std::set<std::string>> met;
  std::set<std::string> served_by;
  for (const Request& request : requests_with_every_operand()) {
    for (const Operand& operand : request.operands) met[request.operation].insert(operand.name);
    for_each_default(request, target_of(9, 0),
                     [&](const Algorithm& algorithm, const Config&) { served_by.insert(algorithm.name()); });
  }
  for (const Operation* operation : operations()) {
    for (const OperandDefinition& operand : operation->operands()) {
      EXPECT_TRUE(met[std::string(operation->name())].contains(operand.name))
          << "tests/requests/every_operand.txt has no line of " << operation->name() << " with " << operand.name;
    }
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    EXPECT_TRUE(served_by.contains(algorithm.name()))
        << algorithm.name() << " serves no line of tests/requests/every_operand.txt";
  }
}

// Whether a launch of these sources takes the operand.
bool takes(const Launch& launch, const std::string& operand) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const Argument& argument) {
    const auto* taken = std::get_if<OperandArgument>(&argument);
    return taken != nullptr && taken->name == operand;
  });
}

// Operands with offsets of their own, of 64 bits in any case. So do a user's tensors: LargeUserTensors.
const std::map<std::string, std::string> always_wide = {
    {"bias", "static_cast<long long>(k) * BIAS_STRIDE"},
    {"weights", "static_cast<long long>(c) * WEIGHTS_STRIDE"},
};

TEST(EveryOperand, AloneBeyond32BitsHasOffsetsOf64) {
  const Target target = target_of(9, 0);
  int met = 0;
  for (const Request& request : requests_with_every_operand()) {
    for (const Operand& operand : request.operands) {
      const auto wide = with_wide_strides(operand.spec);
      const auto changed = wide ? with_operand(request, operand.name, *wide) : std::nullopt;
      if (!changed || is_user_operand(operand.name)) continue;
      for_each_default(*changed, target, [&](const Algorithm& algorithm, const Config& config) {
        const Program program = program_of(algorithm, *changed, target, config);
        for (const Step& step : program.steps) {
          const auto* launch = std::get_if<Launch>(&step);
          if (launch == nullptr || !takes(*launch, operand.name)) continue;
          // One that leaves its result in the workspace has stages in its arguments and does not read them.
          const bool is_of_stage = operand.name == "bias" || operand.name == "residual";
          if (is_of_stage && !takes(*launch, result_of(request).name)) continue;
          ++met;
          const std::string& source = program.sources[launch->source].code;
          const auto own = always_wide.find(operand.name);
          EXPECT_TRUE(source.find("using Index = long long;") != source.npos ||
                      (own != always_wide.end() && source.find(own->second) != source.npos))
              << algorithm.name() << " " << launch->entry << ", " << operand.name << ": " << changed->key();
        }
      });
    }
  }
  RecordProperty("launches", met);
  EXPECT_GT(met, 300);
}

// Constants of a source, by name.
std::map<std::string, std::string> constants_of(const Program& program) {
  std::map<std::string, std::string> constants;
  for (size_t i = 0; i < program.sources.size(); ++i) {
    const std::string& source = program.sources[i].code;
    for (size_t at = source.find("constexpr "); at != std::string::npos; at = source.find("\nconstexpr ", at + 1)) {
      const size_t begin = source.find("constexpr ", at), end = source.find('\n', begin),
                   equals = source.find(" = ", begin);
      if (equals >= end) continue;
      const size_t name = source.rfind(' ', equals - 1) + 1;
      constants[fmt::format("{} {}", i, source.substr(name, equals - name))] = source.substr(equals, end - equals);
    }
  }
  return constants;
}

// One operand of one request that is something else, for a default that serves both.
struct Change {
  const Algorithm& algorithm;
  const Config& config;
  const Request& request;
  const Request& changed;
  const Request& poor;  // the same operand aligned to its elements only
  const std::string& operand;
};

bool is_legal(const Change& change, const Request& request, const Target& target) {
  return !change.algorithm.on(request, target).refusal(change.config);
}

template <class Use>
void for_each_change(const Target& target, TensorSpec (*edit)(TensorSpec), const Use& use) {
  for (const Request& request : requests_with_every_operand()) {
    for (const Operand& operand : request.operands) {
      TensorSpec poor = operand.spec;
      poor.alignment = size_of(poor.dtype);
      const TensorSpec other = edit(operand.spec);
      if (other == operand.spec) continue;
      const auto aligned = with_operand(request, operand.name, poor),
                 changed = with_operand(request, operand.name, other);
      if (!aligned || !changed) continue;
      for_each_default(request, target, [&](const Algorithm& algorithm, const Config& config) {
        const Change change{algorithm, config, request, *changed, *aligned, operand.name};
        if (is_legal(change, *changed, target)) use(change);
      });
    }
  }
}

// The constants that say how the operand is read or written, as far as its alignment decides, with their values.
std::map<std::string, std::string> constants_of_alignment(const Change& change, const Target& target) {
  auto constants = constants_of(program_of(change.algorithm, change.request, target, change.config));
  const auto poor = constants_of(program_of(change.algorithm, change.poor, target, change.config));
  std::erase_if(constants, [&](const auto& constant) {
    const auto& [name, value] = constant;
    const bool is_hint = name.find("ALIGNMENT") != name.npos || name.find("MIN_BLOCKS") != name.npos;
    return is_hint || !poor.contains(name) || poor.at(name) == value;
  });
  return constants;
}

// A kernel drops some accesses (a vector, a legal point) for an operand that is aligned to its elements only. It must
// drop them too where the operand's rows begin anywhere.
TEST(EveryOperand, AloneWithOddStridesIsTakenAsOneThatIsPoorlyAligned) {
  const Target target = target_of(9, 0);
  int met = 0;
  for_each_change(target, with_odd_strides, [&](const Change& change) {
    const bool legal = is_legal(change, change.poor, target);
    EXPECT_TRUE(legal) << change.algorithm.name() << " " << change.operand << ": " << change.changed.key();
    if (!legal) return;
    const auto strided = constants_of(program_of(change.algorithm, change.changed, target, change.config));
    for (const auto& [name, value] : constants_of_alignment(change, target)) {
      ++met;
      EXPECT_NE(strided.at(name), value) << name << " of " << change.algorithm.name() << ", " << change.operand << ": "
                                         << change.changed.key();
    }
  });
  RecordProperty("constants", met);
  EXPECT_GT(met, 50);
}

// Whether the operand in another order is still read or written in such vectors.
bool keeps_vectors(const Change& change, const Target& target) {
  if (!is_legal(change, change.poor, target)) return true;
  const auto changed = constants_of(program_of(change.algorithm, change.changed, target, change.config));
  const auto kept = constants_of_alignment(change, target);
  return std::any_of(kept.begin(), kept.end(), [&](const auto& constant) {
    const auto found = changed.find(constant.first);
    return found != changed.end() && found->second == constant.second;
  });
}

// Where one operand alone is in the opposite order, a kernel takes it element by element, as one that is poorly
// aligned; or it runs along what are neighbours now, and is right.
TEST(EveryOperand, AloneInTheOppositeOrderIsTakenElementByElementOrRight) {
  const Target& target = TestDevice::get().target;
  std::set<std::pair<std::string, std::string>> run;
  int met = 0;
  for_each_change(target, with_opposite_order, [&](const Change& change) {
    if (change.algorithm.trusted()) return;  // element by element, whatever the request says
    ++met;
    if (!keeps_vectors(change, target) || !run.emplace(change.algorithm.name(), change.operand).second) return;
    VariantChecker checker(built_in_catalogue(), change.changed, {});
    EXPECT_TRUE(checker.matches_reference(program_of(change.algorithm, change.changed, target, change.config),
                                          change.algorithm.name() + " " + change.config.print()))
        << change.changed.key();
  });
  RecordProperty("run", static_cast<int>(run.size()));
  EXPECT_GT(met, 150);
}

// Whether the descriptor does the same for both requests: what it says of alignment itself does not count.
bool are_taken_alike(const Algorithm& algorithm, const Request& a, const Request& b, const Config& config,
                     const Target& target) {
  if (algorithm.on(b, target).refusal(config)) return false;
  auto of_a = constants_of(program_of(algorithm, a, target, config));
  auto of_b = constants_of(program_of(algorithm, b, target, config));
  const auto is_alignment = [](const auto& constant) { return constant.first.find("ALIGNMENT") != std::string::npos; };
  std::erase_if(of_a, is_alignment);
  std::erase_if(of_b, is_alignment);
  return of_a == of_b;
}

class PoorlyAligned : public testing::TestWithParam<size_t> {};

// Where a descriptor does the same whether one operand is aligned or not, its kernels must not rely on that: all such
// operands are poorly aligned at once, the others as well as can be, so that vectors stay what they are.
TEST_P(PoorlyAligned, OperandsOfWhichADescriptorDoesNotAskAreTakenElementByElement) {
  const Request& request = requests_with_every_operand()[GetParam()];
  const Target& target = TestDevice::get().target;
  for_each_default(request, target, [&](const Algorithm& algorithm, const Config& config) {
    if (algorithm.trusted()) return;  // element by element, whatever the request says
    Request poor = request;
    for (const Operand& operand : request.operands) {
      TensorSpec spec = operand.spec;
      spec.alignment = size_of(spec.dtype);
      const std::optional<Request> changed = with_operand(request, operand.name, spec);
      ASSERT_TRUE(changed) << operand.name;
      if (are_taken_alike(algorithm, request, *changed, config, target)) poor = *with_operand(poor, operand.name, spec);
    }
    ASSERT_TRUE(are_taken_alike(algorithm, request, poor, config, target)) << poor.key();
    VariantChecker checker(built_in_catalogue(), poor, {});
    EXPECT_TRUE(checker.matches_reference(program_of(algorithm, poor, target, config),
                                          algorithm.name() + " " + config.print()));
  });
}

INSTANTIATE_TEST_SUITE_P(Templates, PoorlyAligned, testing::Range(size_t{0}, requests_with_every_operand().size()));

}  // namespace
}  // namespace kiln::testing_support::operands_test
