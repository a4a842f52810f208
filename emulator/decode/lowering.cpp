#include "decode/lowering.h"

#include <algorithm>
#include <limits>

#include "decoders.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

uint32_t align_up(uint64_t value, uint32_t alignment) {
  return static_cast<uint32_t>((value + alignment - 1) / alignment * alignment);
}

RegisterClass class_for_declaration(ptx::Type type, uint32_t line) {
  if (type == ptx::Type::pred) return RegisterClass::predicate;
  if (ptx::bytes(type) > 8) throw LoadError(line, "registers of 128 bits are not supported");
  return class_of(type);
}

}  // namespace

OperationList lower(const ptx::Function& kernel, const KernelInfo& info, const ModuleNames& module,
                    const UnitTable& units) {
  return Lowering(module, units, info.parameter_bytes).run(kernel, info);
}

OperationList Lowering::run(const ptx::Function& kernel, const KernelInfo& info) {
  scopes_.emplace_back();
  for (size_t k = 0; k < kernel.parameters.size(); ++k) {
    const ParameterSlot& slot = info.parameters[k];
    scopes_.back().declare(kernel.parameters[k].name, VariableName{ptx::Space::param, slot.offset, slot.bytes});
  }
  Operation start;
  start.flow = Operation::Flow::label;
  start.label = list_.labels++;
  start.source = {kernel.line, kernel.name};
  list_.operations.push_back(start);
  position_ = start.source;
  block(*kernel.body);
  Operation end;
  end.handlers = {execute_exit, execute_exit};
  end.flow = Operation::Flow::exit;
  end.source = position_;
  list_.operations.push_back(end);
  list_.local_bytes = align_up(list_.local_bytes, 16);
  return std::move(list_);
}

Entity Lowering::find(std::string_view name, uint32_t line) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name)) return *found;
  }
  const auto found = module_.scope.find(name);
  if (!found) throw LoadError(line, fmt::format("'{}' is not declared", name));
  if (const auto* unplaced = std::get_if<UnplacedShared>(&*found)) return place_shared(*unplaced->variable);
  return *found;
}

RegisterId Lowering::constant(uint64_t bits, RegisterClass width, bool dynamic_shared) {
  auto [at, added] = constants_.try_emplace({bits, width, dynamic_shared}, 0);
  if (added) {
    at->second = temporary(width);
    VirtualRegister& made = list_.registers[at->second];
    made.kind = VirtualRegister::Kind::constant;
    made.bits = bits;
    made.dynamic_shared = dynamic_shared;
  }
  return at->second;
}

RegisterId Lowering::special(Special what, RegisterClass width) {
  auto [at, added] = specials_.try_emplace({what, width}, 0);
  if (added) {
    at->second = temporary(width);
    list_.registers[at->second].kind = VirtualRegister::Kind::special;
    list_.registers[at->second].special = what;
  }
  return at->second;
}

RegisterId Lowering::temporary(RegisterClass width) {
  VirtualRegister made;
  made.width = width;
  list_.registers.push_back(made);
  return static_cast<RegisterId>(list_.registers.size() - 1);
}

RegisterId Lowering::carry_flag() {
  if (carry_flag_ == 0) carry_flag_ = temporary(RegisterClass::predicate);
  return carry_flag_;
}

std::optional<LabelId> Lowering::return_label() const {
  if (frames_.empty()) return std::nullopt;
  return frames_.back().after;
}

void Lowering::block(const ptx::Block& block) {
  scopes_.emplace_back();
  predeclare(block);
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* i = std::get_if<ptx::Instruction>(&statement)) {
      instruction(*i);
    } else if (const auto* declaration = std::get_if<ptx::RegisterDeclaration>(&statement)) {
      registers(*declaration);
    } else if (const auto* declared = std::get_if<ptx::Variable>(&statement)) {
      variable(*declared);
    } else if (const auto* label = std::get_if<ptx::Label>(&statement)) {
      Operation operation;
      operation.flow = Operation::Flow::label;
      operation.label = std::get<LabelName>(*scopes_.back().find(label->name)).id;
      operation.source = {label->line, label->name};
      list_.operations.push_back(std::move(operation));
    } else if (const auto* inner = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      this->block(**inner);
    }
  }
  scopes_.pop_back();
}

// Labels and branch tables may be used before they stand in the text.
void Lowering::predeclare(const ptx::Block& block) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* label = std::get_if<ptx::Label>(&statement)) {
      if (scopes_.back().find(label->name)) {
        throw LoadError(label->line, fmt::format("label '{}' stands twice in this scope", label->name));
      }
      scopes_.back().declare(label->name, LabelName{list_.labels++});
    } else if (const auto* table = std::get_if<ptx::BranchTargets>(&statement)) {
      scopes_.back().declare(table->name, BranchTable{table});
    }
  }
}

void Lowering::instruction(const ptx::Instruction& instruction) {
  position_ = {instruction.line, instruction.text};
  RegisterId guard = 0;
  if (!instruction.guard.empty()) {
    const Entity entity = find(instruction.guard, instruction.line);
    const auto* name = std::get_if<RegisterName>(&entity);
    if (name == nullptr || list_.registers[name->id].width != RegisterClass::predicate) {
      throw LoadError(instruction.line, fmt::format("guard '{}' is not a predicate", instruction.guard));
    }
    guard = name->id;
  }
  DecodeContext context(*this, instruction, guard);
  const Decoder decode = find_decoder(instruction.opcode);
  if (decode == nullptr) context.fail("this instruction is not known");
  decode(context);
}

void Lowering::registers(const ptx::RegisterDeclaration& declaration) {
  const RegisterClass width = class_for_declaration(declaration.type, declaration.line);
  if (declaration.count == 0) {
    scopes_.back().declare(declaration.name, RegisterName{temporary(width)});
    return;
  }
  const auto first = static_cast<RegisterId>(list_.registers.size());
  for (uint32_t k = 0; k < declaration.count; ++k) temporary(width);
  scopes_.back().declare_range(declaration.name, declaration.count, first);
}

void Lowering::variable(const ptx::Variable& variable) {
  switch (variable.space) {
    case ptx::Space::shared:
      scopes_.back().declare(variable.name, place_shared(variable));
      break;
    case ptx::Space::local:
    case ptx::Space::param:
      scopes_.back().declare(variable.name, place_local(variable));
      break;
    default:
      throw LoadError(variable.line, "a .global or .const variable inside a function is not supported");
  }
}

uint32_t Lowering::end_of(const ptx::Variable& variable, uint64_t place) {
  const uint64_t end = place + variable.size();  // below 2^33
  if (end > std::numeric_limits<uint32_t>::max()) {
    throw LoadError(variable.line, fmt::format("with '{}' the function's variables have {} bytes, more than 2^32",
                                               variable.name, end));
  }
  return static_cast<uint32_t>(end);
}

VariableName Lowering::place_shared(const ptx::Variable& variable) {
  auto [at, added] = shared_.try_emplace(&variable);
  if (added) {
    at->second.space = ptx::Space::shared;
    at->second.bytes = variable.size();
    if (variable.unsized) {
      at->second.dynamic_shared = true;
      list_.dynamic_shared_alignment = std::max(list_.dynamic_shared_alignment, variable.alignment);
    } else {
      at->second.place = align_up(list_.static_shared_bytes, variable.alignment);
      list_.static_shared_bytes = end_of(variable, at->second.place);
    }
  }
  return at->second;
}

VariableName Lowering::place_local(const ptx::Variable& variable) {
  VariableName result{ptx::Space::local, align_up(list_.local_bytes, variable.alignment), variable.size()};
  list_.local_bytes = end_of(variable, result.place);
  return result;
}

// call [(results),] function [, (arguments)];
void Lowering::call(DecodeContext& context) {
  const ptx::Instruction& instruction = context.instruction();
  context.modifiers.accept("uni");
  context.finish_modifiers();
  std::vector<ptx::Operand> operands = instruction.operands;
  std::vector<ptx::Operand> returns, arguments;
  if (!operands.empty() && operands.front().kind == ptx::Operand::Kind::list) {
    returns = operands.front().elements;
    operands.erase(operands.begin());
  }
  if (operands.empty() || operands.front().kind != ptx::Operand::Kind::name) context.fail("expected a function");
  const std::string_view name = operands.front().name;
  if (operands.size() > 1) arguments = operands[1].elements;
  if (name == "__assertfail") {
    context.emit(execute_trap, InstructionClass::control);
    return;
  }
  const auto found = module_.functions.find(name);
  if (found == module_.functions.end()) context.fail("calls through a register are not supported");
  const ptx::Function& function = *found->second;
  if (!function.body) {
    context.fail(
        fmt::format("function '{}' has no body here; calls of device-library functions such as printf are not "
                    "supported",
                    name));
  }
  for (const Frame& frame : frames_) {
    if (frame.function == &function) context.fail(fmt::format("'{}' calls itself; recursion is not supported", name));
  }
  if (returns.size() != function.returns.size() || arguments.size() != function.parameters.size()) {
    context.fail(fmt::format("'{}' has {} results and {} parameters", name, function.returns.size(),
                             function.parameters.size()));
  }
  const LabelId after = list_.labels++;
  if (context.guard() != 0) {
    Operation& around = context.emit(execute_branch, InstructionClass::control);
    around.guard_negated = !around.guard_negated;
    around.flow = Operation::Flow::branch;
    around.label = after;
    context.place_label(list_.labels++);
  } else {
    context.emit(execute_nothing, InstructionClass::control);
  }
  frames_.push_back({&function, after});
  inline_body(function, returns, arguments, instruction.line);
  frames_.pop_back();
  position_ = {instruction.line, instruction.text};
  context.place_label(after);
}

void Lowering::inline_body(const ptx::Function& function, const std::vector<ptx::Operand>& returns,
                           const std::vector<ptx::Operand>& arguments, uint32_t line) {
  Scope scope;
  const auto bind = [&](const std::vector<ptx::Variable>& formal, const std::vector<ptx::Operand>& actual) {
    for (size_t k = 0; k < formal.size(); ++k) {
      const Entity entity = find(actual[k].name, line);
      const auto* variable = std::get_if<VariableName>(&entity);
      if (variable == nullptr || variable->space != ptx::Space::local || variable->bytes < formal[k].size()) {
        throw LoadError(line,
                        fmt::format("'{}' must be a .param variable of {} bytes", actual[k].name, formal[k].size()));
      }
      scope.declare(formal[k].name, *variable);
    }
  };
  bind(function.returns, returns);
  bind(function.parameters, arguments);
  std::vector<Scope> outside;
  outside.swap(scopes_);
  scopes_.push_back(std::move(scope));
  block(*function.body);
  scopes_.swap(outside);
}

}  // namespace kiln::emulator
