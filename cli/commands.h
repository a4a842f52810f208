// The commands of the `kiln` program. Each adds itself to the application and, when chosen, runs and sets the exit
// code.
#pragma once

#include <string_view>

#include "command_line.h"
#include "exit_codes.h"

namespace kiln::cli {

inline constexpr std::string_view program_description =
    "kiln: kernels for neural-network layers, generated, checked and tuned for the device at hand";

/// All of them.
void add_commands(Command app, int& exit_code);

void add_tune(Command app, int& exit_code);
void add_run(Command app, int& exit_code);
void add_infer(Command app, int& exit_code);
void add_verify(Command app, int& exit_code);
void add_explain(Command app, int& exit_code);
void add_bug(Command app, int& exit_code);
void add_describe(Command app, int& exit_code);
void add_emit(Command app, int& exit_code);
void add_cache(Command app, int& exit_code);
void add_bundle(Command app, int& exit_code);
void add_devices(Command app, int& exit_code);
void add_worker(Command app, int& exit_code);
/// `kiln man` and `kiln completion`, which packages run.
void add_manual(Command app, int& exit_code);

}  // namespace kiln::cli
