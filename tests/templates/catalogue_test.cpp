// The catalogue as a whole: what must hold for every algorithm that stands in it.
#include "kiln/templates/catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/epilogue.h"
#include "descriptor/parts.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

const Catalogue& catalogue() {
  static const Catalogue built_in = make_catalogue(embedded_sources());
  return built_in;
}

bool is_cuda(const std::string& path) {
  return path.ends_with(".cu") || path.ends_with(".cuh");
}

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const Arch& arch : Arch::all()) all.push_back({arch, 13, 0});
  return all;
}

// Requests that together reach every algorithm.
constexpr const char* products_and_losses[] = {
    "cross_entropy_forward x=f32:64x1000",
    "cross_entropy_forward x=f16:2x21x64x64 reduction=none n=?",
    "cross_entropy_forward x=f32:0x7 reduction=sum",
    "cross_entropy_forward x=f32:64x1000 weights=f32:1000 smoothing=any",
    "cross_entropy_backward x=f16:64x1000 dloss=f32:1",
    "cross_entropy_backward x=f32:2x21x64x64 reduction=sum n=?",
    "gemm a=f16:96x512 b=f16:512x64 c=f16:96x64 epilogue=bias+relu",
    "gemm a=f32:2x3x64x72:13824,4608,1,64 b=f32:1x3x72x80",
    "gemm a=f32:1x512 b=f32:512x100:1,512 epilogue=bias",
    "gemm a=f32:64x512 b=f32:512x10 n=?",
    "gemm a=f32:0x5 b=f32:5x7",
};

constexpr const char* windows[] = {
    "conv_forward x=f32:2x8x14x16:nchw w=f32:16x8x3x3:nchw pad=1,1",
    "conv_forward x=f16:2x64x14x14:nhwc w=f16:64x64x3x3:nhwc pad=1,1 epilogue=bias+relu",
    "conv_forward x=f16:2x64x14x14:nchw w=f16:32x64x1x1:nchw",
    "conv_forward x=f32:2x64x14x14:nhwc w=f32:32x64x1x1:nhwc",
    "conv_forward x=f32:1x512x7x7:nchw w=f32:512x512x3x3:nchw pad=1,1",
    "conv_forward x=f16:2x32x14x14:nhwc w=f16:32x1x3x3:nhwc pad=1,1 groups=32",
    "conv_forward x=f32:2x32x14x14:nchw w=f32:32x1x3x3:nchw pad=1,1 groups=32",
    "conv_forward x=f32:2x3x16x16:nchw w=f32:8x3x3x3:nchw stride=2,2 n=?",
    "conv_forward x=f32:2x64x14x14:nchw w=f32:64x64x3x3:nchw pad=1,1 fast n=?",
    "conv_forward x=f32:2x32x28x28:nhwc w=f32:64x16x3x3:nhwc pad=1,1 groups=2 epilogue=bias+relu fast",
    "conv_backward_data dy=f32:2x64x14x14:nchw w=f32:64x32x3x3:nchw pad=1,1 fast",
    "pool_backward dy=f32:2x8x4x4 x=f32:2x8x8x8 window=2 stride=2",
    "pool_forward x=f16:2x8x8x8:nhwc indices=i32:2x8x4x4:nhwc window=2 stride=2",
    "pool_backward dy=f32:2x8x4x4 indices=i32:2x8x4x4 dx=f32:2x8x8x8 window=2 stride=2 n=?",
    "conv_backward_data dy=f32:2x64x14x14:nchw w=f32:64x32x3x3:nchw pad=1,1 stride=2,2",
    "conv_backward_data dy=f16:2x32x14x14:nhwc w=f16:32x1x3x3:nhwc pad=1,1 groups=32 n=?",
    "conv_backward_data dy=f32:2x32x14x14:nchw w=f32:32x1x3x3:nchw pad=1,1 groups=32",
    "conv_backward_filter x=f32:2x32x14x14:nchw dy=f32:2x64x14x14:nchw dw=f32:64x32x3x3:nchw pad=1,1",
    "conv_backward_filter x=f16:2x32x14x14:nhwc dy=f16:2x32x14x14:nhwc dw=f16:32x1x3x3:nhwc pad=1,1 groups=32",
    "conv_backward_filter x=f32:2x4x9x9:nchw dy=f32:2x8x9x9:nchw dw=f32:8x4x3x3:nchw pad=1,1 n=?",
    "conv_backward_bias dy=f32:8x64x28x28:nchw n=?",
    "local_conv_forward x=f32:8x32x7x7 w=f32:784x32x3x3 pad=1 epilogue=bias n=?",
    "local_conv_backward_data dy=f16:8x32x14x14:nhwc w=f16:288x32x3x3:nhwc pad=1 grid=3 n=?",
    "local_conv_backward_filter x=f32:8x32x14x14 dy=f32:8x32x14x14 dw=f32:288x32x3x3 pad=1 grid=3",
    "local_conv_backward_filter x=f32:8x4x7x7 dy=f32:8x4x7x7 dw=f32:196x4x3x3 pad=1 n=?",
    "conv_backward_bias dy=f32:0x64x28x28:nhwc",
    "pool_forward x=f16:2x64x28x28:nchw mode=max window=3,3 stride=2,2 pad=1,1",
    "pool_forward x=f32:2x64x28x28:nhwc mode=avg window=3,3 stride=2,2 pad=1,1 n=?",
    "pool_forward x=f16:2x64x7x7:nchw mode=avg window=global",
    "pool_forward x=bf16:2x64x7x7:nhwc mode=avg window=global",
    "pool_forward x=f32:0x8x8x8:nchw mode=max window=2,2",
};

constexpr const char* elements_and_rows[] = {
    "softmax_forward x=f32:8x1000:nc axis=1",
    "softmax_forward x=f16:8x32000:nc axis=1 mode=log n=?",
    "softmax_forward x=bf16:2x21x64x64:nchw axis=1",
    "softmax_forward x=f32:0x1000:nc axis=1",
    "softmax_backward y=f16:8x1000:nc axis=1 n=?",
    "softmax_backward y=f32:2x21x64x64:nchw axis=1 mode=log",
    "activation_forward x=f16:8x64x14x14:nhwc mode=gelu n=?",
    "activation_forward x=f32:2x64x14x14:nchw y=f16:2x64x14x14:nhwc mode=identity",
    "activation_forward x=f32:0x7 mode=relu",
    "activation_backward x=f32:2x64x14x14 dy=f32:2x64x14x14:nhwc mode=mish",
    "tensor_transform x=f32:2x64x14x14 y=i8:2x64x14x14:nhwc alpha=any",
    "tensor_transform x=u8:2x3x6x7 pad=0,0,1,2,0,0,3,4",
    "tensor_set y=bf16:5x33",
    "tensor_op a=f32:2x64x14x14:nhwc b=f32:1x64x1x1 y=f16:2x64x14x14 mode=mul",
    "tensor_op a=u8:6x1x9 b=f32:6x8x9 c=f32:1x8x1 mode=select",
    "reduce x=f16:8x64x14x14:nhwc axes=0,2,3 mode=mean",
    "reduce x=f32:8x5x77 indices=i32:8x1x1 axes=1,2 mode=max n=?",
    "reduce x=f32:0x7 axes=0",
    ("norm_forward x=f16:8x64x14x14:nhwc w=f32:1x64x1x1 running_mean=f32:1x64x1x1 running_variance=f32:1x64x1x1 "
     "axes=0,2,3 epilogue=add+relu"),
    "norm_forward x=f32:8x77 inv_deviation=f32:8x1 mode=rms n=?",
    "norm_inference x=f16:8x64x14x14:nhwc b=f32:1x64x1x1 epilogue=relu n=?",
    "norm_backward dy=f32:8x64x14x14 w=f32:1x64x1x1 dw=f32:1x64x1x1 db=f32:1x64x1x1 axes=0,2,3",
    "norm_backward dy=f16:32x77 w=f32:1x77 dw=f32:1x77 mode=rms",
    "norm_backward dy=f16:32x77 w=f32:1x77 b=f32:1x77 residual=f32:32x77 dw=f32:1x77 activation=softplus",
    "dropout x=f16:8x64x14x14:nhwc n=?",
    "dropout x=f32:0x7 alpha=any",
    "local_norm_forward x=f16:8x64x14x14 n=?",
    "local_norm_forward x=f32:8x64 size=4",
    "local_norm_forward x=f32:8x64x14x14:nhwc means=f32:8x64x14x14 axes=2,3 alpha=any",
    "local_norm_backward x=f32:8x64x14x14:nhwc dy=f16:8x64x14x14",
    "local_norm_backward x=f32:2x3x4x5x6 dmeans=f32:2x3x4x5x6 axes=2,3,4 size=2 n=?",
    "local_norm_backward x=f32:0x7 beta=any",
    "activation_backward y=bf16:3x7x5 dy=bf16:3x7x5 mode=sigmoid alpha=any beta=any",
};

std::vector<Request> requests() {
  std::vector<Request> parsed;
  for (const char* line : windows) parsed.push_back(Request::parse(line));
  for (const char* line : elements_and_rows) parsed.push_back(Request::parse(line));
  for (const char* line : products_and_losses) parsed.push_back(Request::parse(line));
  return parsed;
}

TEST(BuiltInCatalogue, NamesEachAlgorithmOnce) {
  std::set<std::string> names;
  for (const Algorithm& algorithm : catalogue().algorithms()) EXPECT_TRUE(names.insert(algorithm.name()).second);
}

TEST(BuiltInCatalogue, HasOneTrustedAlgorithmForEachOperation) {
  std::map<std::string, int> trusted;
  for (const Algorithm& algorithm : catalogue().algorithms()) trusted[algorithm.operation()] += algorithm.trusted();
  for (const Operation* operation : operations()) EXPECT_EQ(trusted[std::string(operation->name())], 1);
  EXPECT_EQ(trusted.size(), operations().size());
}

TEST(BuiltInCatalogue, KeepsEachTemplateBesideItsDescriptorUnderTheAlgorithmsName) {
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    const std::string& path = algorithm.template_path();
    const std::string stem = path.substr(path.rfind('/') + 1, path.rfind('.') - path.rfind('/') - 1);
    // Or, where operations share a template, that of the operation in front: activation_forward_vector.
    const std::string shared = algorithm.operation() + stem.substr(stem.rfind('_'));
    EXPECT_TRUE(algorithm.name() == stem || algorithm.name() == shared) << path;
    EXPECT_TRUE(embedded_sources().files().contains(path.substr(0, path.rfind('.')) + ".cpp"));
  }
}

TEST(BuiltInCatalogue, TrustsAlgorithmsThatServeAnyRequest) {
  for (const Request& request : requests()) {
    const Algorithm& trusted = catalogue().trusted(request.operation);
    for (const Target& target : targets()) {
      EXPECT_EQ(trusted.refusal(request, target), std::nullopt) << request.key();
      EXPECT_TRUE(trusted.space().first_legal(request, target)) << request.key();
    }
  }
}

TEST(BuiltInCatalogue, GeneratesTheDefaultOfEveryAlgorithmForEveryArchitecture) {
  std::set<std::string> generated;
  for (const Request& request : requests()) {
    for (const Target& target : targets()) {
      for (const Algorithm& algorithm : catalogue().algorithms()) {
        if (algorithm.refusal(request, target)) continue;
        const std::optional<Config> config = algorithm.space().first_legal(request, target);
        if (!config) continue;
        const Program program = catalogue().program(request, target, {algorithm.name(), *config});
        EXPECT_FALSE(program.sources.empty());
        EXPECT_FALSE(program.steps.empty());
        generated.insert(algorithm.name());
      }
    }
  }
  EXPECT_EQ(generated.size(), catalogue().algorithms().size()) << "a request that reaches the new algorithm is missing";
}

TEST(BuiltInCatalogue, NamesInEveryLaunchAKernelThatTheSourceHas) {
  for (const Request& request : requests()) {
    const Target target = targets().back();
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      if (algorithm.refusal(request, target)) continue;
      const std::optional<Config> config = algorithm.space().first_legal(request, target);
      if (!config) continue;
      const Program program = catalogue().program(request, target, {algorithm.name(), *config});
      for (const Step& step : program.steps) {
        const auto* launch = std::get_if<Launch>(&step);
        if (launch == nullptr) continue;
        ASSERT_LT(launch->source, program.sources.size());
        const std::regex kernel("extern \"C\" __global__ void[^;{]*\\b" + launch->entry + "\\s*\\(");
        EXPECT_TRUE(std::regex_search(program.sources[launch->source], kernel)) << launch->entry;
        EXPECT_LE(launch->block[0] * launch->block[1] * launch->block[2],
                  static_cast<unsigned>(target.arch.threads_per_block));
      }
    }
  }
}

// Its place in the kernels is checked on the device, in user_code*_test.cpp.
TEST(BuiltInCatalogue, HasNoAlgorithmThatRefusesUserCodeOrLeavesItOut) {
  const Expression code("acc + 1"), both("--- prologue\nx + 1\n---\nacc + 1");
  const Target target = targets().back();
  const auto takes_it = [](const Program& program) {
    return std::any_of(program.steps.begin(), program.steps.end(), [](const Step& step) {
      const auto* launch = std::get_if<Launch>(&step);
      return launch != nullptr && std::find(launch->arguments.begin(), launch->arguments.end(),
                                            Argument(UserArgument{})) != launch->arguments.end();
    });
  };
  std::set<std::string> taken;
  for (const Request& request : requests()) {
    Request plain = request.dynamic_batch ? request.with_batch(request.batch()) : request;
    plain.epilogue.clear();
    std::erase_if(plain.operands, [&](const Operand& operand) {
      return request.epilogue != plain.epilogue && (operand.name == "bias" || operand.name == "residual");
    });
    const bool enters = !operation(request.operation).prologue_operand().empty();
    const Request coded = with_user_code(plain, enters ? both : code, {});
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      if (algorithm.refusal(plain, target)) continue;
      const std::optional<std::string> refusal = algorithm.refusal(coded, target);
      EXPECT_FALSE(refusal) << coded.key() << ": " << algorithm.name() << ": " << *refusal;
      const std::optional<Config> config = algorithm.space().first_legal(coded, target);
      if (refusal || !config) continue;
      EXPECT_TRUE(takes_it(algorithm.program(catalogue().library(), coded, target, *config))) << algorithm.name();
      taken.insert(algorithm.name());
    }
  }
  for (const Algorithm& algorithm : catalogue().algorithms())
    EXPECT_TRUE(taken.contains(algorithm.name())) << algorithm.name();
}

TEST(BuiltInCatalogue, GivesEqualSourcesForEqualKeys) {
  const Catalogue other = make_catalogue(embedded_sources());
  for (const Request& request : requests()) {
    const Request same = Request::parse(request.key());
    const Target target = targets()[4];
    // One in eleven, from the best to the worst: there are thousands.
    const auto ranked = catalogue().candidates(request, target, {132, 1.7e9, 4.8e12, 60 << 20}).ranked;
    for (size_t i = 0; i < ranked.size(); i += 11) {
      const Choice& choice = ranked[i].choice;
      EXPECT_EQ(catalogue().program(request, target, choice), other.program(same, target, choice));
    }
  }
}

TEST(BuiltInCatalogue, PredictsFinitePositiveTimesAboveZero) {
  for (const Request& request : requests()) {
    for (const Candidate& candidate :
         catalogue().candidates(request, targets()[4], {132, 1.7e9, 4.8e12, 60 << 20}).ranked) {
      EXPECT_TRUE(std::isfinite(candidate.estimate.seconds)) << candidate.choice.algorithm;
      EXPECT_GT(candidate.estimate.seconds, 0) << candidate.choice.algorithm;
    }
  }
}

// Requests of every operation with an operand beyond 2^31 elements, or with strides that reach as far.
constexpr const char* beyond_32_bits[] = {
    "gemm a=f16:65536x40000 b=f16:40000x64 c=f16:65536x64",
    "gemm a=f32:64x64 b=f32:64x64 c=f32:64x64:100000000,1",
    "gemm a=f16:4x40000 b=f16:40000x65536 c=f16:4x65536",
    "reduce x=f16:65536x40000 axes=1",
    "norm_forward x=f16:65536x40000",
    "norm_inference x=f16:512x64x256x512",
    "norm_backward dy=f16:65536x40000 dw=f32:1x40000",
    "dropout x=f16:65536x40000",
    "tensor_transform x=f16:65536x40000",
    "tensor_transform x=f16:64x64x1024x1024:nchw y=f16:64x64x1024x1024:nhwc",
    "tensor_set y=f16:65536x40000",
    "tensor_op a=f16:65536x40000 b=f16:65536x1 mode=add",
    "tensor_op a=f16:64x64x1024x1024:nchw b=f16:64x64x1024x1024:nhwc mode=add",
    "activation_forward x=f16:65536x40000",
    "activation_forward x=f16:64x64x1024x1024:nchw y=f16:64x64x1024x1024:nhwc",
    "activation_backward x=f16:65536x40000 dy=f16:65536x40000",
    "activation_backward x=f16:64x64x1024x1024 dy=f16:64x64x1024x1024:nhwc",
    "cross_entropy_forward x=f16:65536x40000",
    "cross_entropy_forward x=f32:64x64x1024x1024",
    "cross_entropy_backward x=f16:65536x40000",
    "cross_entropy_backward x=f32:64x64x1024x1024",
    "local_norm_forward x=f16:512x64x256x512",
    "local_norm_forward x=f16:512x64x256x512:nhwc",
    "local_norm_forward x=f16:512x64x256x512 axes=2,3",
    "local_norm_backward x=f16:512x64x256x512",
    "local_norm_backward x=f16:512x64x256x512:nhwc",
    "local_norm_backward x=f16:512x64x256x512 axes=2,3",
    "softmax_forward x=f16:65536x40000",
    "softmax_forward x=f16:4194304x1000",
    "softmax_forward x=f32:64x64x1024x1024:nchw axis=1",
    "softmax_backward y=f16:65536x40000",
    "softmax_backward y=f32:64x64x1024x1024:nchw axis=1",
    "conv_forward x=f32:512x64x256x512 w=f32:64x64x3x3 pad=1 fast",
    "conv_forward x=f16:512x64x256x512 w=f16:64x64x1x1",
    "conv_forward x=f32:512x64x256x512 w=f32:64x1x3x3 pad=1 groups=64",
    "conv_forward x=f16:512x64x256x512:nhwc w=f16:64x1x3x3:nhwc pad=1 groups=64",
    "conv_forward x=f32:2x64x14x14:3000000000,196,14,1 w=f32:64x64x3x3 pad=1 fast",
    "conv_forward x=f32:2x512x7x7:3000000000,49,7,1 w=f32:512x512x3x3 pad=1",
    "conv_backward_data dy=f32:2x64x14x14:3000000000,196,14,1 w=f32:64x64x3x3 pad=1 fast",
    "conv_backward_data dy=f32:2x512x7x7:3000000000,49,7,1 w=f32:512x512x3x3 pad=1",
    "conv_backward_filter x=f32:2x4x9x9:3000000000,81,9,1 dy=f32:2x8x9x9 dw=f32:8x4x3x3 pad=1",
    "local_conv_forward x=f32:2x32x7x7:3000000000,49,7,1 w=f32:784x32x3x3 pad=1 grid=7",
    "local_conv_backward_data dy=f32:2x16x7x7:3000000000,49,7,1 w=f32:784x32x3x3 pad=1 grid=7",
    "local_conv_forward x=f32:2x32x7x7 w=f32:49x16x32x3x3:3000000000,288,9,3,1 pad=1 grid=7",
    "local_conv_backward_data dy=f32:2x16x7x7 w=f32:49x16x32x3x3:3000000000,288,9,3,1 pad=1 grid=7",
    "local_conv_backward_filter x=f32:2x32x7x7 dy=f32:2x16x7x7 dw=f32:49x16x32x3x3:3000000000,288,9,3,1 pad=1 grid=7",
    "conv_backward_data dy=f16:512x64x256x512 w=f16:64x64x3x3 pad=1",
    "conv_backward_data dy=f32:512x64x256x512 w=f32:64x64x3x3 pad=1 fast",
    "conv_backward_data dy=f32:512x64x256x512 w=f32:64x1x3x3 pad=1 groups=64",
    "conv_backward_data dy=f16:512x64x256x512:nhwc w=f16:64x1x3x3:nhwc pad=1 groups=64",
    "conv_backward_filter x=f16:512x64x256x512 dy=f16:512x64x256x512 dw=f16:64x64x3x3 pad=1",
    "conv_backward_bias dy=f16:512x64x256x512",
    "local_conv_forward x=f16:512x64x256x512 w=f16:64x64x3x3 pad=1 grid=1",
    "local_conv_forward x=f16:512x64x256x512 w=f16:1048576x64x3x3 pad=1 grid=128",
    "local_conv_backward_data dy=f16:512x64x256x512 w=f16:64x64x3x3 pad=1 grid=1",
    "local_conv_backward_filter x=f16:512x64x256x512 dy=f16:512x64x256x512 dw=f16:64x64x3x3 pad=1 grid=1",
    "pool_forward x=f16:512x64x256x512 window=3 pad=1",
    "pool_forward x=f16:512x64x256x512:nhwc window=3 pad=1",
    "pool_forward x=f16:512x64x256x512 mode=avg window=global",
    "pool_forward x=f16:512x64x256x512:nhwc mode=avg window=global",
    "pool_forward x=f16:512x64x256x512 indices=i32:512x64x256x512 window=3 pad=1",
    "pool_backward dy=f16:512x64x256x512 x=f16:512x64x256x512 window=3 pad=1",
};

// The sources that a program runs on an operand; others see its workspace alone, which may need less.
std::set<std::string> sources_on_operands(const Program& program, const Request& request) {
  std::set<std::string> found;
  for (const Step& step : program.steps) {
    const Launch* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    for (const Argument& argument : launch->arguments) {
      const auto* operand = std::get_if<OperandArgument>(&argument);
      if (operand != nullptr && request.find(operand->name) != nullptr) found.insert(program.sources[launch->source]);
    }
  }
  return found;
}

TEST(BuiltInCatalogue, UsesSixtyFourBitOffsetsWhereThirtyTwoDoNotReach) {
  const Target target = targets()[4];
  std::set<std::string> met;
  for (const char* line : beyond_32_bits) {
    const Request request = Request::parse(line);
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      if (algorithm.refusal(request, target)) continue;
      const auto config = algorithm.space().first_legal(request, target);
      if (!config) continue;
      met.insert(algorithm.name());
      const Program program = catalogue().program(request, target, {algorithm.name(), *config});
      for (const std::string& source : sources_on_operands(program, request)) {
        EXPECT_NE(source.find("using Index = long long;"), std::string::npos) << algorithm.name() << ": " << line;
      }
    }
  }
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_TRUE(met.contains(algorithm.name())) << algorithm.name() << " serves no request of these";
  }
}

TEST(BuiltInCatalogue, UsesThirtyTwoBitOffsetsWhereTheyReach) {
  const Target target = targets()[4];
  const Request small = Request::parse("pool_forward x=f16:2x64x256x256:nchw mode=max window=2,2 stride=2,2");
  for (const char* name : {"pool_simple", "pool_nchw"}) {
    const Config config = catalogue().find(name)->space().first_legal(small, target).value();
    const std::string source = catalogue().program(small, target, {name, config}).sources.front();
    EXPECT_NE(source.find("using Index = int;"), std::string::npos) << name;
  }
}

TEST(BuiltInTemplates, IncludeNothingButPiecesOfTheLibrary) {
  const std::regex include(R"(^[ \t]*#[ \t]*include[ \t]*(.*)$)", std::regex::multiline);
  for (const auto& [path, text] : catalogue().library().files()) {
    if (!is_cuda(path)) continue;
    for (std::sregex_iterator found(text.begin(), text.end(), include), end; found != end; ++found) {
      const std::string target = (*found)[1].str();
      const bool is_place =
          path == "lib/user_code.cuh" && (target.starts_with("\"user/") || target == "\"types/by_code\"");
      EXPECT_TRUE(is_place || target.starts_with("\"lib/") || target.starts_with("\"per_class/lib/"))
          << path << " includes " << target;
    }
  }
}

// Preludes hold the generator's numbers; pieces give them names.
TEST(BuiltInTemplates, NumberStagesAndScalesAsTheGeneratorDoes) {
  const auto holds = [](const std::string& piece, const std::string& text) {
    EXPECT_NE(catalogue().library().text(piece).find(text), std::string::npos) << piece << ": " << text;
  };
  const auto upper = [](std::string_view name) {
    std::string text(name);
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    return text;
  };
  for (const EpilogueStage stage : all_stages) {
    holds("lib/epilogue.cuh",
          fmt::format("constexpr int STAGE_{} = {};", upper(to_string(stage)), descriptor::stage_code(stage)));
  }
  const std::map<Scale, std::string> names = {{Scale::zero, "ZERO"}, {Scale::one, "ONE"}, {Scale::any, "ANY"}};
  for (const Scale scale : all_scales) {
    holds("lib/blend.cuh", fmt::format("SCALE_{} = {}", names.at(scale), descriptor::scale_code(scale)));
  }
}

TEST(BuiltInTemplates, AreAllUsed) {
  std::set<std::string> used;
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    for (const std::string& path : closure(catalogue().library(), algorithm.template_path())) used.insert(path);
  }
  for (const auto& [path, text] : catalogue().library().files()) {
    EXPECT_TRUE(!is_cuda(path) || used.contains(path)) << path;
  }
}

TEST(AlgorithmDigest, ChangesWithAPieceThatTheTemplateIncludesOnly) {
  std::map<std::string, std::string> files = embedded_sources().files();
  files["lib/softmax.cuh"] += "\nint edited;\n";
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  EXPECT_NE(edited.digest("softmax_warp"), catalogue().digest("softmax_warp"));
  EXPECT_EQ(edited.digest("pool_nchw"), catalogue().digest("pool_nchw"));
}

TEST(AlgorithmDigest, ChangesWithATemplateWhoseKernelsAreLaunchedToo) {
  std::map<std::string, std::string> files = embedded_sources().files();
  files["conv/implicit_gemm/conv_1x1.cu"] += "\nint edited;\n";
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  EXPECT_NE(edited.digest("conv_winograd_2x2"), catalogue().digest("conv_winograd_2x2"));
  EXPECT_EQ(edited.digest("conv_winograd_2x2_fused"), catalogue().digest("conv_winograd_2x2_fused"));
}

TEST(AlgorithmDigest, ChangesWithTheTypesThatEverySourceStartsWith) {
  std::map<std::string, std::string> files = embedded_sources().files();
  files["lib/types.cuh"] += "\nint edited;\n";
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_NE(edited.digest(algorithm.name()), catalogue().digest(algorithm.name())) << algorithm.name();
  }
}

TEST(AlgorithmDigest, ChangesWithTheDescriptor) {
  std::map<std::string, std::string> files = embedded_sources().files();
  files["pool/pool_nchw.cpp"] += "\nint edited;\n";
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  EXPECT_NE(edited.digest("pool_nchw"), catalogue().digest("pool_nchw"));
  EXPECT_EQ(edited.digest("pool_nhwc"), catalogue().digest("pool_nhwc"));
}

TEST(AlgorithmDigest, ChangesWithWhatOfTheGeneratorShapesItsSources) {
  const auto edited = [](const std::string& path) {
    std::map<std::string, std::string> files = embedded_sources().files();
    EXPECT_TRUE(files.contains(path)) << path;
    files[path] += "int edited;\n";
    return make_catalogue(SourceLibrary(std::move(files)));
  };
  for (const char* of_all :
       {"user_code.cpp", "kiln/generator/specialise.cpp", "kiln/generator/dtype.h", "kiln/generator/expression.cpp",
        "kiln/generator/tensor_spec.cpp", "kiln/generator/window_axis.cpp", "operations/finish.cpp"}) {
    const Catalogue catalogue_with_it = edited(of_all);
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      EXPECT_NE(catalogue_with_it.digest(algorithm.name()), catalogue().digest(algorithm.name()))
          << algorithm.name() << " " << of_all;
    }
  }
  const Catalogue with_pooling = edited("kiln/generator/operations/pool_forward.cpp");
  EXPECT_NE(with_pooling.digest("pool_nchw"), catalogue().digest("pool_nchw"));
  EXPECT_EQ(with_pooling.digest("conv_direct"), catalogue().digest("conv_direct"));
}

TEST(AlgorithmDigest, ChangesWithTheDefinitionOfItsOperation) {
  std::map<std::string, std::string> files = embedded_sources().files();
  for (auto& [path, text] : files) {
    if (path.starts_with("operations/") || path.starts_with("kiln/generator/operations/")) text += "int edited;\n";
  }
  files["operations/finish.cpp"] = embedded_sources().text("operations/finish.cpp");
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_NE(edited.digest(algorithm.name()), catalogue().digest(algorithm.name())) << algorithm.name();
  }
}

TEST(AlgorithmDigest, IsThatOfTheCode) {
  std::map<std::string, std::string> files = embedded_sources().files();
  for (auto& [path, text] : files) {
    if (is_cuda(path)) text = "// a comment\n\n" + text + "\n// another one\n";
  }
  const Catalogue commented = make_catalogue(SourceLibrary(std::move(files)));
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_EQ(commented.digest(algorithm.name()), catalogue().digest(algorithm.name())) << algorithm.name();
  }
}

TEST(AlgorithmDigest, ChangesWithWhatTheDescriptorShares) {
  std::map<std::string, std::string> files = embedded_sources().files();
  files["pool/pool_problem.cpp"] += "\nint edited;\n";
  const Catalogue edited = make_catalogue(SourceLibrary(std::move(files)));
  EXPECT_NE(edited.digest("pool_nchw"), catalogue().digest("pool_nchw"));
  EXPECT_EQ(edited.digest("softmax_warp"), catalogue().digest("softmax_warp"));
}

}  // namespace
}  // namespace kiln
