// Contexts that end after main(): one of static storage, and one that a function of atexit() ends, which was named
// before anything of Kiln was there. The program has passed where it ends with exit code 0.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "kiln/base/environment.h"
#include "kiln/context.h"
#include "kiln/generator/request.h"
#include "kiln/memory.h"

namespace {

std::unique_ptr<kiln::Context>& ended_at_exit() {
  static auto& context = *new std::unique_ptr<kiln::Context>;  // NOLINT(cppcoreguidelines-owning-memory)
  return context;
}

kiln::ContextOptions options() {
  kiln::ContextOptions options;
  options.cache = "off";
  return options;
}

// Many plans: what is written to freed memory is found out by what is freed behind it.
void make_plans(kiln::Context& context) {
  for (int rows = 2; rows < 14; ++rows) {
    context.plan(kiln::Request::parse("softmax_forward x=f32:" + std::to_string(rows) + "x4"));
  }
}

}  // namespace

int main() {
  if (std::atexit([] { ended_at_exit().reset(); }) != 0) return 1;
  ended_at_exit() = std::make_unique<kiln::Context>(options());
  make_plans(*ended_at_exit());
  static kiln::Context context(options());
  static const kiln::DeviceMemory memory(context, 1024);
  make_plans(context);
  std::puts("done");
  return 0;
}
