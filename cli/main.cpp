// The `kiln` program.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "commands.h"
#include "kiln/base/error.h"
#include "kiln/version.h"

namespace kiln::cli {
namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::parse_error:
      return usage;
    case ErrorCode::missing_library:
    case ErrorCode::driver_error:
      return no_device;
    case ErrorCode::io_error:
      return io;
    case ErrorCode::unsupported:
    case ErrorCode::out_of_memory:
    case ErrorCode::compile_failed:
    case ErrorCode::internal:
      return failed_check;
  }
  return failed_check;
}

constexpr const char* footer = R"(Examples:
  kiln tune examples/models/resnet18.onnx             tune every layer of a model
  kiln tune 'softmax_forward x=f32:1x1000 axis=1'     tune one layer
  kiln run --check examples/models/resnet18.onnx      run the tuned layers and compare with the reference
  kiln explain 'conv_forward x=f32:1x3x224x224 w=f32:64x3x7x7 pad=3 stride=2'
  kiln cache export --winners tuned.pack              the winners, as text to ship and to review
  kiln bundle model.onnx --arch 80,90 -o app.kiln     the winners, compiled: to ship without NVRTC

Exit codes: 0 success; 1 a result was wrong or a layer could not be served; 2 wrong usage or input; 3 no driver, device,
NVRTC or worker; 4 a file could not be read or written; 130 interrupted (what was measured is kept).
Environment: docs/environment.md. Request syntax: docs/request-syntax.md.)";

int run(int argc, char** argv) {
  CLI::App app("kiln: kernels for neural-network layers, generated, checked and tuned for the device at hand", "kiln");
  app.set_version_flag("--version", "kiln " + std::string(version()));
  app.require_subcommand(1);
  app.footer(footer);
  int exit_code = success;
  add_tune(app, exit_code);
  add_run(app, exit_code);
  add_verify(app, exit_code);
  add_explain(app, exit_code);
  add_emit(app, exit_code);
  add_cache(app, exit_code);
  add_bundle(app, exit_code);
  add_devices(app, exit_code);
  add_worker(app, exit_code);
  const auto is_named = [&](const CLI::App* command) { return argc > 1 && command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
    fmt::print(stderr, "kiln: there is no command '{}'; `kiln --help` lists them\n", argv[1]);
    return usage;
  }
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? success : usage;
  } catch (const Error& error) {
    fmt::print(stderr, "kiln: {}: {}\n", to_string(error.code()), error.message());
    if (!error.hint().empty()) fmt::print(stderr, "      {}\n", error.hint());
    return exit_code_of(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "kiln: out of memory on this machine\n");
    return failed_check;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kiln: internal error: {}\n", error.what());
    return failed_check;
  }
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  return kiln::cli::run(argc, argv);
}
