// From the syntax tree of a kernel to a list of operations: resolves names, lays out shared and local memory, inlines
// calls (so that divergent calls need no return stack), and hands each instruction to its decoder.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/context.h"
#include "kernel/kernel.h"
#include "ptx/load_error.h"

namespace kiln::emulator {

/// The module as its kernels see it: its target, its variables with their addresses, and its functions.
struct ModuleNames {
  int target_capability = 0;  ///< of .target, 10 x major + minor
  int tensor_hardware = 0;    ///< MatrixProduct::hardware
  Scope scope;
  std::unordered_map<std::string_view, const ptx::Function*> functions;
};

/// Throws LoadError for anything that cannot be executed.
OperationList lower(const ptx::Function& kernel, const KernelInfo& info, const ModuleNames& module,
                    const UnitTable& units);

class Lowering {
 public:
  Lowering(const ModuleNames& module, const UnitTable& units, uint32_t parameter_bytes)
      : module_(module), units_(units), parameter_bytes_(parameter_bytes) {}
  OperationList run(const ptx::Function& kernel, const KernelInfo& info);

  // For DecodeContext.
  OperationList& list() { return list_; }
  const UnitTable& units() const { return units_; }
  Entity find(std::string_view name, uint32_t line);
  RegisterId constant(uint64_t bits, RegisterClass width, bool dynamic_shared);
  RegisterId special(Special what, RegisterClass width);
  RegisterId temporary(RegisterClass width);
  RegisterId carry_flag();
  uint32_t parameter_bytes() const { return parameter_bytes_; }
  int target_capability() const { return module_.target_capability; }
  int tensor_hardware() const { return module_.tensor_hardware; }
  const SourcePosition& position() const { return position_; }

  // For the decoders of control flow.
  void call(DecodeContext& context);
  /// The label behind an inlined function's body; nothing in the kernel itself.
  std::optional<LabelId> return_label() const;

 private:
  void block(const ptx::Block& block);
  void predeclare(const ptx::Block& block);
  void instruction(const ptx::Instruction& instruction);
  void variable(const ptx::Variable& variable);
  void registers(const ptx::RegisterDeclaration& declaration);
  static uint32_t end_of(const ptx::Variable& variable, uint64_t place);
  VariableName place_shared(const ptx::Variable& variable);
  VariableName place_local(const ptx::Variable& variable);
  void inline_body(const ptx::Function& function, const std::vector<ptx::Operand>& returns,
                   const std::vector<ptx::Operand>& arguments, uint32_t line);

  struct Frame {
    const ptx::Function* function;
    LabelId after;
  };

  const ModuleNames& module_;
  const UnitTable& units_;
  const uint32_t parameter_bytes_;
  OperationList list_;
  std::vector<Scope> scopes_;
  std::vector<Frame> frames_;
  std::unordered_map<const ptx::Variable*, VariableName> shared_;
  std::map<std::tuple<uint64_t, RegisterClass, bool>, RegisterId> constants_;
  std::map<std::pair<Special, RegisterClass>, RegisterId> specials_;
  RegisterId carry_flag_ = 0;
  SourcePosition position_;
};

}  // namespace kiln::emulator
