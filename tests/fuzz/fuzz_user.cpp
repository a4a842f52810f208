// Descriptors of user templates: read, held against requests of every operation, and made into programs.
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/templates/catalogue.h"
#include "kiln/templates/user_templates.h"

namespace kiln::fuzz {
namespace {

constexpr size_t programs_of_a_request = 4;

/// Fixtures on which every input is tried.
struct Surroundings {
  SourceLibrary library;  ///< Kiln's pieces, and the kernel that all descriptors share.
  std::vector<Request> requests;
  kiln::Target target{Arch::of(9, 0), 13, 0};
  DeviceFigures figures{132, 1.98e9, 4.8e12, 50 << 20};

  static Surroundings make() {
    std::map<std::string, std::string> files = embedded_sources().files();
    files["user/input.cu"] = "#include \"lib/store.cuh\"\nextern \"C\" __global__ void input() {}\n";
    const Expressions code = {{"e", Expression("--- prologue\nx * s\n---\nacc + b", {"b"}, {"s"})}};
    Surroundings around{SourceLibrary(std::move(files)), {}};
    for (const char* line :
         {"conv_forward x=f32:1x3x9x9 w=f32:16x3x3x3 y=f32:1x16x9x9:nhwc pad=1 epilogue=bias+relu",
          "conv_forward x=f16:2x4x7x5:nhwc w=f16:6x2x3x3 groups=2 epilogue=user:e epilogue.b=f32:6",
          "conv_forward x=f32:1x2x3x4x5 w=f32:2x2x1x1x1 n=?", "conv_forward x=f32:0x3x9x9 w=f32:16x3x3x3",
          "pool_forward x=f16:2x5x13x11:nhwc mode=max window=3 stride=2 pad=1",
          "pool_forward x=f32:1x2x1000000 mode=avg window=4", "softmax_forward x=f32:4x37 n=?",
          "softmax_forward x=f32:5x3x7 axis=1"}) {
      around.requests.push_back(Request::parse(line, code));
    }
    return around;
  }
};

void check_launch(const Launch& launch, int64_t n, const Arch& arch, int64_t workspace) {
  constexpr std::array<int64_t, 3> most = {2147483647, 65535, 65535};
  int64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t blocks = launch.grid[i].at(n);
    check(blocks >= 0 && blocks <= most[i], "a grid is one that a launch can have");
    threads *= launch.block[i];
  }
  check(threads >= 1 && threads <= arch.threads_per_block, "a block is one that a launch can have");
  check(launch.dynamic_shared_bytes <= static_cast<unsigned>(arch.shared_per_block), "shared memory fits");
  for (const Argument& argument : launch.arguments) {
    const auto* at = std::get_if<WorkspaceArgument>(&argument);
    check(at == nullptr || (at->offset >= 0 && at->offset <= workspace), "an offset lies in the workspace");
  }
}

void generate(const Surroundings& around, const Algorithm& algorithm, const Request& request) {
  if (algorithm.on(request, around.target).refusal()) return;
  const double seconds = algorithm.on(request, around.target).estimate(Config(), around.figures).seconds;
  check(std::isfinite(seconds) && seconds >= 0, "an estimate is a time");
  size_t made = 0;
  algorithm.on(request, around.target).for_each_legal([&](const Config& config) {
    const Program program = algorithm.on(request, around.target).program(around.library, config);
    check(program.workspace_bytes >= 0 && program.workspace_bytes % 256 == 0, "workspace comes in whole 256 bytes");
    for (const Step& step : program.steps) {
      check_launch(std::get<Launch>(step), request.batch(), around.target.arch, program.workspace_bytes);
    }
    return ++made < programs_of_a_request;
  });
}

// Letters, digits and underscores of a descriptor: holds the name of every kernel that it launches.
std::string words_of(std::string_view descriptor) {
  std::string words(descriptor);
  for (char& c : words) {
    const bool in_a_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!in_a_name) c = ' ';
  }
  return words;
}

std::string run(const Surroundings& around, std::string_view input) {
  try {
    const SourceLibrary user({{"user/input.json", std::string(input)}, {"user/input.cu", words_of(input)}});
    std::string seen;
    for (const Algorithm& algorithm : user_algorithms(user)) {
      for (const Request& request : around.requests) {
        generate(around, algorithm, request);
        seen += " " + algorithm.on(request, around.target).refusal().value_or("served");
      }
    }
    return seen;
  } catch (const Error& error) {
    check(error.code() == ErrorCode::parse_error || error.code() == ErrorCode::invalid_argument, error.what());
    check(error.message().starts_with("input.json: "), "an error names the file");
    return error.what();
  }
}

// Pieces of a descriptor.
const std::vector<std::string> dictionary = {"\"kiln_template\": 1",
                                             "\"operation\": ",
                                             "conv_forward",
                                             "pool_forward",
                                             "pool_backward",
                                             "softmax_forward",
                                             "\"applies\": {",
                                             "\"parameters\": {",
                                             "\"constants\": {",
                                             "\"rules\": {",
                                             "\"launches\": [",
                                             "\"workspace\": ",
                                             "\"per_image\": ",
                                             "\"per_block\": ",
                                             "\"dynamic_shared\": ",
                                             "\"kernel\": ",
                                             "\"grid\": [",
                                             "\"block\": [",
                                             "\"arguments\": [",
                                             "\"deterministic\": false",
                                             "\"prologue\": true",
                                             "\"efficiency\": ",
                                             "ceil_div(",
                                             "round_up(",
                                             "min(",
                                             "max(",
                                             " && ",
                                             " || ",
                                             " ? ",
                                             " : ",
                                             " / ",
                                             " % ",
                                             " * ",
                                             "!",
                                             "-",
                                             "==",
                                             "<=",
                                             "(",
                                             ")",
                                             "0",
                                             "1",
                                             "9223372036854775807",
                                             "K",
                                             "C",
                                             "P * Q",
                                             "ROW",
                                             "MOST_SHARED",
                                             "THREADS",
                                             "X_NCHW",
                                             "\"",
                                             ",",
                                             "{",
                                             "}",
                                             "[",
                                             "]",
                                             "\\u0000",
                                             "\xff",
                                             "1e999",
                                             "null"};

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  const kiln::fuzz::Surroundings around = kiln::fuzz::Surroundings::make();
  return kiln::fuzz::fuzz_main(argc, argv,
                               {.name = "user",
                                .run = [&](std::string_view input) { return kiln::fuzz::run(around, input); },
                                .dictionary = kiln::fuzz::dictionary});
}
