// Loading a program: parse, place its variables, decode its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "decode/assembler.h"
#include "decode/lowering.h"
#include "machine/program.h"
#include "ptx/parser.h"
#include "variables.h"

namespace kiln::emulator {
namespace {

constexpr uint32_t most_parameter_bytes = 32764;  // as the PTX ISA says

KernelInfo describe(const ptx::Function& function) {
  KernelInfo info;
  info.name = function.name;
  info.max_threads = function.max_threads;
  info.needs_cluster = function.needs_cluster;
  if (const std::vector<uint32_t>& block = function.required_block; !block.empty()) {
    const auto extent = [&](size_t axis) { return axis < block.size() ? block[axis] : 1; };
    info.required_block = Dim3{extent(0), extent(1), extent(2)};
  }
  uint32_t end = 0;
  for (const ptx::Variable& parameter : function.parameters) {
    const uint32_t alignment = std::max<uint32_t>(parameter.alignment, 1);
    end = (end + alignment - 1) / alignment * alignment;
    info.parameters.push_back({end, static_cast<uint32_t>(parameter.size())});
    if (parameter.size() > most_parameter_bytes - std::min(end, most_parameter_bytes)) {
      throw LoadError(parameter.line, fmt::format("with '{}' the parameters of '{}' have more than {} bytes",
                                                  parameter.name, function.name, most_parameter_bytes));
    }
    end += static_cast<uint32_t>(parameter.size());
  }
  info.parameter_bytes = end;
  return info;
}

/// 90 of "sm_90a"
int capability_of(std::string_view target) {
  constexpr std::string_view prefix = "sm_";
  int capability = 0;
  if (target.starts_with(prefix)) {
    std::from_chars(target.data() + prefix.size(), target.data() + target.size(), capability);
  }
  return capability;
}

}  // namespace

std::shared_ptr<const Program> load_program(std::string_view ptx) {
  return load_program(ptx, unit_table());
}

std::shared_ptr<const Program> load_program(std::string_view ptx, const UnitTable& units, int tensor_hardware) {
  auto program = std::make_shared<Program>();
  program->text = ptx;
  const ptx::Module module = ptx::parse(program->text);
  program->target_capability = capability_of(module.target);
  ModuleNames names;
  names.target_capability = program->target_capability;
  names.tensor_hardware = tensor_hardware;
  place_variables(module, *program, names);
  for (const ptx::Function& function : module.functions) {
    // A declaration may stand before or after the definition.
    const ptx::Function*& known = names.functions[function.name];
    if (known == nullptr || !known->body) known = &function;
  }
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || !function.body) continue;
    Kernel& kernel = program->kernels.emplace_back();
    kernel.info = describe(function);
    Assembled assembled = assemble(lower(function, kernel.info, names, units), units);
    kernel.code = std::move(assembled.code);
    kernel.values = std::move(assembled.values);
    kernel.info.static_shared_bytes = kernel.code.static_shared_bytes;
    kernel.info.local_bytes = kernel.code.local_bytes;
    kernel.info.registers_estimate = assembled.registers_estimate;
    kernel.variables = program->regions;
    kernel.constants = program->constants;
  }
  return program;
}

const Kernel* find_kernel(const Program& program, std::string_view name) {
  const auto at = std::find_if(program.kernels.begin(), program.kernels.end(),
                               [&](const Kernel& kernel) { return kernel.info.name == name; });
  return at == program.kernels.end() ? nullptr : &*at;
}

const KernelInfo& info(const Kernel& kernel) {
  return kernel.info;
}

int target_capability(const Program& program) {
  return program.target_capability;
}

const std::vector<GlobalVariable>& global_variables(const Program& program) {
  return program.variables;
}

RegionGroup variables_of(const std::shared_ptr<const Program>& program) {
  return program->regions.empty() ? nullptr : RegionGroup(program, &program->regions);
}

}  // namespace kiln::emulator
