// Request lines: parsed, printed and parsed again; and what the catalogue makes of those that make sense.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/space.h"
#include "kiln/templates/catalogue.h"

namespace kiln::fuzz {
namespace {

// Every algorithm's opinion of an accepted request, and its first program: rules must not stumble over odd shapes.
void generate(const Catalogue& catalogue, const Request& request) {
  const kiln::Target target{Arch::of(9, 0), 13, 0};
  const DeviceFigures figures{132, 1.98e9, 4.8e12, 50 << 20};
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    const std::optional<Config> config = algorithm.on(request, target).first_legal();
    if (!config) continue;
    const Choice choice{algorithm.name(), *config};
    check(!catalogue.program(request, target, choice).sources.empty(), "a legal point has a program");
    check(catalogue.estimate(request, target, figures, choice).seconds >= 0, "an estimate is a time");
    check(Config::parse(config->print()) == *config, "a configuration comes back from its text");
  }
}

std::string run(const Catalogue& catalogue, std::string_view input) {
  try {
    const std::vector<RequestLine> lines = parse_requests(input);
    for (const RequestLine& line : lines) {
      const std::string key = line.request.key();
      check(Request::parse(key) == line.request, "a request comes back from its key");
      check(Request::parse(key).key() == key, "a key is canonical");
      generate(catalogue, line.request);
    }
    return lines.empty() ? "no request" : "accepted " + lines.front().request.operation;
  } catch (const Error& error) {
    check(error.code() == ErrorCode::parse_error || error.code() == ErrorCode::invalid_argument ||
              error.code() == ErrorCode::unsupported,
          error.what());
    return error.what();
  }
}

// Every name that a definition gives, and what stands between them.
std::vector<std::string> dictionary() {
  std::vector<std::string> words = {"f32:",
                                    "f16:",
                                    "bf16:",
                                    "f8e4m3:",
                                    "f8e5m2:",
                                    "i8:",
                                    ":nchw",
                                    ":nhwc",
                                    ":nc",
                                    " n=?",
                                    " acc=",
                                    "f32",
                                    "tf32",
                                    " fast",
                                    " epilogue=",
                                    "bias+relu",
                                    "clip",
                                    "add",
                                    "user:e",
                                    " epilogue.b=",
                                    " prologue.b=",
                                    "expression e(b; s)\n",
                                    "\nend expression\n",
                                    "---\n",
                                    "--- prologue\n",
                                    "return ",
                                    ";",
                                    " alpha=any",
                                    " beta=any",
                                    " align=",
                                    " *3",
                                    "# ",
                                    "\n",
                                    "x",
                                    ",",
                                    "="};
  for (const Operation* operation : operations()) {
    words.emplace_back(operation->name());
    for (const OperandDefinition& operand : operation->operands()) words.push_back(" " + operand.name + "=");
    for (const AttributeDefinition& attribute : operation->attributes()) {
      words.push_back(" " + attribute.name + "=");
      words.insert(words.end(), attribute.words.begin(), attribute.words.end());
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  const kiln::Catalogue catalogue = kiln::make_catalogue(kiln::embedded_sources());
  return kiln::fuzz::fuzz_main(argc, argv,
                               {.name = "request",
                                .run = [&](std::string_view input) { return kiln::fuzz::run(catalogue, input); },
                                .dictionary = kiln::fuzz::dictionary()});
}
