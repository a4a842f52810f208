// Results of the reference for the requests of the test files, and how far a kernel may be from it, held against
// bounds.txt: of each output the weighted sum of its elements, that of the errors that arithmetic may make of them, and
// how many are NaN, infinite or open; how far it moves with what a prologue gives. Comparison with other libraries
// (torch_table_test.cpp, onednn_test.cpp) says that the values are right, but not that a bound is no wider than
// docs/numerics.md derives it.
//
// A difference is either a mistake or what a change was meant to do. The test leaves what it found beside its own
// program, to be compared and put in the place of the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/possible_indices.h"
#include "kiln/reference/prologue_slack.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "request_suites.h"
#include "table_file.h"

namespace kiln::reference::bounds_test {
namespace {

constexpr const char* file_name = KILN_TABLES "/bounds.txt";

/// A request with memory for its operands, and numbers that no default is.
struct Example {
  Request request;
  std::map<std::string, std::vector<std::byte>> memory = {};
  RunValues values = check_values(request);

  Example(const Request& of, Values fill) : request(of) {
    const Blend blend = blend_of(request, result_of(request).name);
    if (blend.alpha == Scale::any) values.alpha = -1.5F;
    if (blend.beta == Scale::any) values.beta = 0.75F;
    values.clip_lo = -0.75F;
    values.clip_hi = 0.5F;
    uint64_t seed = 1;
    for (const Operand& operand : request.operands) {
      std::vector<std::byte>& bytes = memory[operand.name] = filled(request, operand, fill, seed++);
      const bool is_positive = operand.name.ends_with("variance") || operand.name.ends_with("deviation");
      if (!is_positive || fill == Values::specials) continue;
      for_each_coordinate(operand.spec, [&](std::span<const int64_t> at) {
        write(operand.spec, bytes, at, 0.25 + std::fabs(read(operand.spec, bytes, at)));
      });
    }
  }

  std::map<std::string, std::span<const std::byte>> operands() const { return {memory.begin(), memory.end()}; }
};

/// A sum in which the places of elements count.
class Weighted {
 public:
  void add(double value) {
    if (std::isfinite(value)) {
      const double term = value * static_cast<double>(1 + number_ % 7);
      sum_ += term;
      magnitude_ += std::fabs(term);
    } else {
      ++others_;
    }
    ++number_;
  }
  std::string text() const {
    const double sum = std::fabs(sum_) > 1e-10 * magnitude_ ? sum_ : 0;  // what cancels leaves the library's roundings
    return fmt::format("{:.6g}{}", sum, others_ == 0 ? "" : fmt::format(" and {} more", others_));
  }

 private:
  double sum_ = 0, magnitude_ = 0;
  size_t number_ = 0, others_ = 0;  // of elements; of those that are not finite
};

/// `sum 1.5 +- 2e-07, 3 nan`
std::string elements_of(const Example& example, const std::string& output) {
  Weighted sum, error;
  std::map<std::string, int> counts;
  const Bindings bindings{.operands = example.operands(), .values = example.values};
  for (const Expected& expected : Oracle(example.request, bindings, output).all()) {
    if (expected.unspecified) ++counts["open"];
    if (expected.any_not_finite) ++counts["not finite"];
    if (expected.copied) ++counts["copied"];
    if (!std::isfinite(expected.value)) ++counts[fmt::format("{}", std::fabs(expected.value))];
    if (expected.unspecified || !std::isfinite(expected.value)) continue;
    sum.add(expected.value);
    error.add(arithmetic_error(example.request, expected));
  }
  std::string text = fmt::format("sum {} +- {}", sum.text(), error.text());
  for (const auto& [name, count] : counts) text += fmt::format(", {} {}", count, name);
  return text;
}

/// How far all outputs move with small perturbations; of every fifth element there is none, one is not known.
std::string moves_of(const Example& example) {
  const Request& plain = example.request;
  const std::string input(operation(plain.operation).prologue_operand());
  std::vector<float> perturbations(static_cast<size_t>(plain.at(input).elements()));
  for (size_t i = 0; i < perturbations.size(); ++i) {
    if (i % 5 != 0) perturbations[i] = static_cast<float>(random_bits(9, i) % 64) * 0x1p-12F;
    if (i == 17) perturbations[i] = std::numeric_limits<float>::infinity();
  }
  const std::string& result = result_of(plain).name;
  const auto operands = example.operands();
  const auto call = slack_call(plain, operands, perturbations, example.values);
  std::string text;
  if (call) {
    Bindings bindings{.operands = {}, .values = call->values};
    for (const auto& [name, bytes] : call->operands) bindings.operands[name] = bytes;
    Weighted sum;
    for (const double distance : evaluate(plain, bindings)) sum.add(std::fabs(distance));
    text += fmt::format("  {} moves {}, of which {:.3g}\n", result, sum.text(), call->error);
  }
  std::vector<std::string> outputs;
  for (const Operand& operand : plain.operands) {
    const std::string& name = operand.name;
    if (!is_written(plain, name) || (call && name == result)) continue;
    if (!names_elements(plain, name)) {
      outputs.push_back(name);
      continue;
    }
    Weighted places;
    for (const auto& [number, positions] : possible_indices(plain, operands, perturbations)) {
      places.add(static_cast<double>(number));
      for (const double position : positions) places.add(position);
    }
    text += fmt::format("  {} may name {}\n", name, places.text());
  }
  for (const auto& [name, distances] : prologue_slack(plain, outputs, operands, perturbations, example.values)) {
    Weighted sum;
    for (const float distance : distances) sum.add(distance);
    text += fmt::format("  {} moves {}\n", name, sum.text());
  }
  return text;
}

std::string text_of(const Request& request) {
  const Request plain = without_user_code(request);
  std::string text = request.key() + "\n";
  for (const auto& [name, fill] :
       {std::pair("uniform", Values::uniform), {"integers", Values::integers}, {"specials", Values::specials}}) {
    const Example example(has_prologue(request) ? plain : request, fill);
    for (const Operand& operand : example.request.operands) {
      if (is_written(example.request, operand.name))
        text += fmt::format("  {} of {}: {}\n", operand.name, name, elements_of(example, operand.name));
    }
  }
  if (operation(plain.operation).prologue_operand().empty()) return text;
  return text + moves_of(Example(plain, Values::uniform));
}

// Small requests whose every word is tried, beside those of the files: layers there that have such a word may be large.
constexpr const char* bases[] = {
    "conv_forward x=f32:1x2x6x6 w=f32:3x2x3x3 pad=1 fast",
    "conv_forward x=f16:1x2x6x6 w=f16:3x2x3x3 pad=1 fast epilogue=bias+clip",
    "conv_forward x=f32:1x2x6x6 w=f32:3x2x3x3 pad=1 tf32 alpha=any beta=any",
    "conv_backward_data dy=f32:1x2x6x6 w=f32:2x3x3x3 pad=1 fast",
    "gemm a=f32:4x7 b=f32:7x3 tf32",
    "gemm a=f16:4x7 b=f16:7x3 fast alpha=any",
    "gemm a=f8e4m3:2x300 b=f8e5m2:300x2 c=f32:2x2 alpha=any",
    "gemm a=f8e4m3:2x300 b=f8e5m2:300x2 c=f32:2x2 fast",
    "gemm a=f8e4m3:4x7 b=bf16:7x3 c=f32:4x3",
    "pool_forward x=f32:1x2x5x6 window=3 stride=2 pad=1",
    "pool_forward x=f16:1x2x5x6 window=2,3 stride=1,2 dilation=2,1 alpha=any",
    "pool_backward dy=f32:1x2x3x3 x=f32:1x2x5x6 window=3 stride=2 pad=1",
    "pool_backward dy=f32:1x2x3x3 dx=f32:1x2x5x6 mode=avg window=3 stride=2 pad=1",
    "resize x=f32:1x2x5x4 size=7,3 mode=nearest",
    "resize x=f32:1x2x5x4 size=7,3 mode=linear",
    "resize x=f32:1x2x5x4 size=7,3 mode=cubic",
    "resize x=f32:1x2x5x4 up=7,4 down=5,3 mode=nearest",
    "resize x=f32:1x2x5x4 up=7,4 down=5,3 mode=linear",
    "resize x=f32:1x2x5 size=1 mode=linear",
    "softmax_forward x=f32:2x5x3 axis=1 alpha=any",
    "softmax_backward y=f32:2x5x3 axis=1 alpha=any",
    "activation_forward x=f16:5x7 alpha=any",
    "activation_backward x=f32:5x7 dy=f32:5x7 alpha=any",
    "tensor_op a=f32:5x7 b=f32:1x7 y=f32:5x7 mode=add",
    "tensor_op a=f16:5x7 b=f16:5x7 mode=add alpha=any beta=any",
    "tensor_op a=f32:5x7 mode=sqrt",
    "tensor_op a=i32:5x7 b=i32:5x1 y=i32:5x7 mode=add",
    "reduce x=f32:5x7 axes=1",
    "reduce x=f16:3x4x5 axes=0,2 alpha=any beta=any",
    "reduce x=i32:3x4 indices=i32:3x1 axes=1 mode=max",
    "cross_entropy_forward x=f32:4x5 weights=f32:5 smoothing=any alpha=any",
    "cross_entropy_forward x=f32:4x5",
    "cross_entropy_backward x=f32:4x5 weights=f32:5 smoothing=any alpha=any",
    "cross_entropy_backward x=f32:4x5",
    "norm_forward x=f32:5x7 w=f32:1x7 b=f32:1x7 activation=relu alpha=any",
    ("norm_forward x=f32:4x3x2 axes=0,2 mean=f32:1x3x1 inv_deviation=f32:1x3x1 running_mean=f32:1x3x1 "
     "running_variance=f32:1x3x1"),
    "norm_affine x=f32:4x3x2 w=f32:1x3x1 b=f32:1x3x1 axes=1,2",
    "norm_inference x=f32:5x7 w=f32:1x7 b=f32:1x7 axes=0 activation=relu",
    "norm_backward dy=f32:5x7 w=f32:1x7 b=f32:1x7 dw=f32:1x7 db=f32:1x7 dresidual=f32:5x7 mean=f32:5x1 activation=relu",
    "norm_backward dy=f32:5x7 w=f32:1x7 mode=rms",
    "local_norm_forward x=f32:2x7 means=f32:2x7 size=4",
    "local_norm_backward x=f32:2x7 means=f32:2x7 dmeans=f32:2x7 size=4 alpha=any dmeans_alpha=any",
    "dropout x=f16:5x7 alpha=any",
};

/// The request with each word of each of its attributes, where that makes sense.
std::vector<Request> with_each_word(const Request& request) {
  std::vector<Request> all{request};
  for (const AttributeDefinition& attribute : operation(request.operation).attributes()) {
    for (const std::string& word : attribute.words) {
      Request other = request;
      for (Attribute& own : other.attributes) {
        if (own.name == attribute.name) own.value = word;
      }
      try {
        all.push_back(finished(std::move(other)));
      } catch (const Error&) {
        continue;  // with these operands there is no such request
      }
    }
  }
  return all;
}

TEST(Bounds, AreThoseOfTheFile) {
  std::string text;
  std::vector<Request> requests;
  for (const char* base : bases) requests.push_back(Request::parse(base));
  for (const Request& request : testing_support::one_of_each()) requests.push_back(request);
  std::vector<Request> all;
  for (const Request& request : requests) {
    for (Request& each : with_each_word(request)) all.push_back(std::move(each));
  }
  for (const Request& request : testing_support::all_requests()) all.push_back(request);
  std::set<std::string> seen;
  for (const Request& request : all) {
    int64_t elements = 0;
    for (const Operand& operand : request.operands) elements = std::max(elements, operand.spec.elements());
    if (elements <= 2048 && seen.insert(request.key()).second) text += text_of(request);
  }
  const std::string difference = test::difference_from_table(file_name, text);
  EXPECT_TRUE(difference.empty()) << "the reference says something else now: " << difference;
}

}  // namespace
}  // namespace kiln::reference::bounds_test
