// The commands of the `kiln` program. Each adds itself to the application and, when chosen, runs and sets the exit
// code.
#pragma once

#include <string_view>

#include "exit_codes.h"

namespace CLI {
class App;
}

namespace kiln::cli {

inline constexpr std::string_view program_description =
    "kiln: kernels for neural-network layers, generated, checked and tuned for the device at hand";

/// All of them.
void add_commands(CLI::App& app, int& exit_code);

void add_tune(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_infer(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_describe(CLI::App& app, int& exit_code);
void add_emit(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_bundle(CLI::App& app, int& exit_code);
void add_devices(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
/// `kiln man` and `kiln completion`, which packages run.
void add_manual(CLI::App& app, int& exit_code);

}  // namespace kiln::cli
