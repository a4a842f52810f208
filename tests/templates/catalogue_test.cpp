// The catalogue as a whole: what must hold for every algorithm that stands in it.
#include "kiln/templates/catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/epilogue.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operation.h"
#include "request_suites.h"

namespace kiln::catalogue_test {
namespace {

using testing_support::awkward_requests;
using testing_support::requests_with_every_operand;

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

// They reach every algorithm. From the awkward ones those whose batch is empty or known to the call alone.
const std::vector<Request>& requests() {
  static const std::vector<Request> all = [] {
    std::vector<Request> found = requests_with_every_operand();
    const std::vector<Request>& awkward = awkward_requests();
    std::copy_if(awkward.begin(), awkward.end(), std::back_inserter(found),
                 [](const Request& request) { return request.dynamic_batch || request.batch() == 0; });
    return found;
  }();
  return all;
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
    // Or a template is specialised in several ways: conv_tensor_f16_sums.
    const auto ways = {"_f16_sums", "_packed", "_blocks", "_channels"};
    const bool is_another_way =
        std::ranges::any_of(ways, [&](const char* way) { return algorithm.name() == stem + way; });
    EXPECT_TRUE(algorithm.name() == stem || algorithm.name() == shared || is_another_way) << path;
    EXPECT_TRUE(embedded_sources().files().contains(path.substr(0, path.rfind('.')) + ".cpp"));
  }
}

TEST(BuiltInCatalogue, TrustsAlgorithmsThatServeAnyRequest) {
  for (const Request& request : requests()) {
    const Algorithm& trusted = catalogue().trusted(request.operation);
    for (const Target& target : targets()) {
      EXPECT_EQ(trusted.on(request, target).refusal(), std::nullopt) << request.key();
      EXPECT_TRUE(trusted.on(request, target).first_legal()) << request.key();
    }
  }
}

// Whether no step that prepares weights takes what differs from call to call: compiled programs that do are refused
// where they come from a bundle, a store or a worker (execution/validate.cpp).
bool prepares_from_addresses_alone(const Program& program) {
  return std::all_of(program.steps.begin(),
                     program.steps.begin() + static_cast<std::ptrdiff_t>(program.preparation.steps),
                     [](const Step& step) {
                       const auto* launch = std::get_if<Launch>(&step);
                       if (launch == nullptr) return true;
                       const auto is_address = [](const Argument& argument) {
                         return std::holds_alternative<OperandArgument>(argument) ||
                                std::holds_alternative<WorkspaceArgument>(argument);
                       };
                       return std::all_of(launch->arguments.begin(), launch->arguments.end(), is_address) &&
                              std::all_of(launch->grid.begin(), launch->grid.end(),
                                          [](const Count& count) { return count.per_n == 0; });
                     });
}

TEST(BuiltInCatalogue, GeneratesTheDefaultOfEveryAlgorithmForEveryArchitecture) {
  std::set<std::string> generated;
  for (const Request& request : requests()) {
    for (const Target& target : targets()) {
      for (const Algorithm& algorithm : catalogue().algorithms()) {
        const std::optional<Config> config = algorithm.on(request, target).first_legal();
        if (!config) continue;
        const Program program = catalogue().program(request, target, {algorithm.name(), *config});
        EXPECT_TRUE(prepares_from_addresses_alone(program)) << algorithm.name() << ": " << request.key();
        EXPECT_FALSE(program.sources.empty());
        EXPECT_FALSE(program.steps.empty());
        generated.insert(algorithm.name());
      }
    }
  }
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_TRUE(generated.contains(algorithm.name())) << algorithm.name() << " serves no line of tests/requests";
  }
}

// Whether `source` defines a kernel of that name: between its begin and its name no declaration ends.
bool has_kernel(const std::string& source, const std::string& entry) {
  for (size_t at = 0; (at = source.find(entry + "(", at)) != source.npos; ++at) {
    const size_t begin = source.rfind("extern \"C\" __global__ void", at);
    if (begin != source.npos && source.find_first_of(";{", begin) > at) return true;
  }
  return false;
}

TEST(BuiltInCatalogue, NamesInEveryLaunchAKernelThatTheSourceHas) {
  for (const Request& request : requests()) {
    const Target target = targets().back();
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      const std::optional<Config> config = algorithm.on(request, target).first_legal();
      if (!config) continue;
      const Program program = catalogue().program(request, target, {algorithm.name(), *config});
      for (const Step& step : program.steps) {
        const auto* launch = std::get_if<Launch>(&step);
        if (launch == nullptr) continue;
        ASSERT_LT(launch->source, program.sources.size());
        EXPECT_TRUE(has_kernel(program.sources[launch->source].code, launch->entry)) << launch->entry;
        EXPECT_LE(launch->block[0] * launch->block[1] * launch->block[2],
                  static_cast<unsigned>(target.arch.threads_per_block));
      }
    }
  }
}

// Its place in the kernels is checked on the device, in user_code*_test.cpp.
TEST(BuiltInCatalogue, HasNoAlgorithmThatRefusesUserCodeOrLeavesItOut) {
  const Expression code("acc + 1"), both("--- prologue\nx + 1\n---\nacc + 1"),
      rounded("--- rounded prologue\nx + 1\n---\nacc + 1");
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
    if (request.user_code) continue;
    Request plain = request.dynamic_batch ? request.with_batch(request.batch()) : request;
    plain.epilogue.clear();
    std::erase_if(plain.operands, [&](const Operand& operand) {
      return request.epilogue != plain.epilogue && (operand.name == "bias" || operand.name == "residual");
    });
    const bool is_staged = !operation(request.operation).stages().empty();
    for (Attribute& attribute : plain.attributes) {  // no activation that user code would follow
      if (is_staged && attribute.name == "activation") attribute.value = std::string("identity");
    }
    const bool enters = !operation(request.operation).prologue_operand().empty();
    const Request finished = with_user_code(plain, code, {});
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      if (algorithm.on(plain, target).refusal()) continue;
      // Tensor cores multiply what is stored: the results of another prologue would be rounded once more.
      const Prologues prologues = algorithm.definition().prologues;
      const bool enters_it = prologues != Prologues::none || !enters;
      EXPECT_TRUE(prologues == Prologues::any || !enters || algorithm.name().find("_tensor") != std::string::npos)
          << algorithm.name();
      const Expression& entering = prologues == Prologues::rounded ? rounded : both;
      const Request coded = with_user_code(plain, enters ? entering : code, {});
      // A prologue keeps taps that would become channels of a 1x1 filter: another algorithm multiplies them.
      const bool keeps_taps = algorithm.name() == "conv_1x1" && request.at("w").extents.back() > 1;
      const BoundAlgorithm bound = algorithm.on(enters_it && !keeps_taps ? coded : finished, target);
      EXPECT_FALSE(bound.refusal()) << coded.key() << ": " << algorithm.name() << ": " << *bound.refusal();
      const std::optional<Config> config = bound.first_legal();
      if (!config) continue;
      EXPECT_TRUE(takes_it(bound.program(catalogue().library(), *config))) << algorithm.name();
      taken.insert(algorithm.name());
    }
  }
  for (const Algorithm& algorithm : catalogue().algorithms())
    EXPECT_TRUE(taken.contains(algorithm.name()))
        << algorithm.name() << " serves no line of tests/requests with user code";
}

TEST(BuiltInCatalogue, GivesEqualSourcesForEqualKeys) {
  const Catalogue other = make_catalogue(embedded_sources());
  for (const Request& request : requests()) {
    if (request.user_code) continue;  // a key holds its digest
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

// The sources that a program runs on an operand beyond 2^31 elements; others see smaller ones and workspace alone.
std::set<std::string> sources_on_large_operands(const Program& program, const Request& request) {
  std::set<std::string> found;
  for (const Step& step : program.steps) {
    const Launch* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    for (const Argument& argument : launch->arguments) {
      const auto* operand = std::get_if<OperandArgument>(&argument);
      const TensorSpec* spec = operand == nullptr ? nullptr : request.find(operand->name);
      if (spec != nullptr && std::max(spec->span(), spec->elements()) >= int64_t{1} << 31)
        found.insert(program.sources[launch->source].code);
    }
  }
  return found;
}

TEST(BuiltInCatalogue, UsesSixtyFourBitOffsetsWhereThirtyTwoDoNotReach) {
  const Target target = targets()[4];
  std::set<std::string> met;
  for (const Request& request : testing_support::requests_beyond_32_bits()) {
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      const auto config = algorithm.on(request, target).first_legal();
      if (!config) continue;
      met.insert(algorithm.name());
      const Program program = catalogue().program(request, target, {algorithm.name(), *config});
      for (const std::string& source : sources_on_large_operands(program, request)) {
        EXPECT_NE(source.find("using Index = long long;"), std::string::npos)
            << algorithm.name() << ": " << request.key();
      }
    }
  }
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    EXPECT_TRUE(met.contains(algorithm.name()))
        << algorithm.name() << " serves no line of tests/requests/beyond_32_bits.txt";
  }
}

TEST(BuiltInCatalogue, UsesThirtyTwoBitOffsetsWhereTheyReach) {
  const Target target = targets()[4];
  const Request small = Request::parse("pool_forward x=f16:2x64x256x256:nchw mode=max window=2,2 stride=2,2");
  for (const char* name : {"pool_simple", "pool_nchw"}) {
    const Config config = catalogue().find(name)->on(small, target).first_legal().value();
    const std::string source = catalogue().program(small, target, {name, config}).sources.front().code;
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
    for (const std::string& file : algorithm.templates()) {
      for (const std::string& path : closure(catalogue().library(), file)) used.insert(path);
    }
  }
  for (const auto& [path, text] : catalogue().library().files()) {
    EXPECT_TRUE(!is_cuda(path) || used.contains(path)) << path;
  }
}

// Else every stored time would be stale with each new operation.
TEST(AlgorithmDigest, DoesNotKnowTheListsOfOperationsAndAlgorithms) {
  const SourceLibrary library = embedded_sources();
  for (const auto& [path, text] : library.files()) {
    EXPECT_TRUE(path.find("operations/operations.") == path.npos && path.find("operation_list") == path.npos &&
                path.find("catalogue.cpp") == path.npos)
        << path;
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
}  // namespace kiln::catalogue_test
