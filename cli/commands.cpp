#include "commands.h"

#include <fmt/format.h>

#include <string>

#include "checks.h"
#include "command_line.h"
#include "kiln/version.h"
#include "usage.h"

namespace kiln::cli {
namespace {

constexpr const char* examples = R"(Examples:
  kiln tune examples/models/resnet18.onnx             tune every layer of a model
  kiln tune 'softmax_forward x=f32:1x1000 axis=1'     tune one layer
  kiln run --check examples/models/resnet18.onnx      run the tuned layers and compare with the reference
  kiln describe pool_forward                          the parts of a request; without a name: all operations
  kiln explain 'conv_forward x=f32:1x3x224x224 w=f32:64x3x7x7 pad=3 stride=2'
  kiln cache export --winners tuned.pack              the winners, as text to ship and to review
  kiln bundle model.onnx --arch 80,90 -o app.kiln     the winners, compiled: to ship without NVRTC
  kiln help cache diff                                what a command does and takes
)";

std::string footer() {
  std::string text = fmt::format("{}\nExit codes:\n", examples);
  for (const ExitMeaning& meaning : exit_meanings())
    text += fmt::format("  {:>3}  {}\n", static_cast<int>(meaning.code), meaning.words);
  return text +
         "Environment: docs/environment.md. Request syntax: docs/request-syntax.md. All of this: docs/command-line.md.";
}

}  // namespace

void add_commands(Command app, int& exit_code) {
  app.add_version("--version", "kiln " + std::string(version()));
  app.require_command();
  add_tune(app, exit_code);
  add_run(app, exit_code);
  add_infer(app, exit_code);
  add_verify(app, exit_code);
  add_explain(app, exit_code);
  add_describe(app, exit_code);
  add_bug(app, exit_code);
  add_emit(app, exit_code);
  add_cache(app, exit_code);
  add_bundle(app, exit_code);
  add_devices(app, exit_code);
  add_worker(app, exit_code);
  add_manual(app, exit_code);
  add_help(app, exit_code);
  refuse_empty_values(app);
  app.footer(footer());  // last: commands made after it would take it over
}

}  // namespace kiln::cli
