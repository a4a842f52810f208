// The decoders' view of a kernel: the instruction at hand, its operands as virtual registers, and the list that
// operations go to.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "decode/modifiers.h"
#include "decode/operation.h"
#include "decode/scope.h"
#include "ptx/ast.h"
#include "units/unit_table.h"

namespace kiln::emulator {

/// How a name outside any function is resolved and what a kernel's lowering owns; see lowering.h.
class Lowering;

class DecodeContext {
 public:
  DecodeContext(Lowering& lowering, const ptx::Instruction& instruction, RegisterId guard);

  const ptx::Instruction& instruction() const { return instruction_; }
  const ptx::Operand& operand(size_t index) const;
  size_t operands() const { return instruction_.operands.size(); }
  const UnitTable& units() const { return units_; }
  Modifiers modifiers;

  /// Throws LoadError with the instruction's line and text.
  [[noreturn]] void fail(std::string_view why) const;
  /// The next modifier that names a type.
  ptx::Type type();
  /// Fails if a modifier is left or the number of operands is not `count`.
  void finish(size_t count);
  void finish_modifiers();

  /// The compute capability of the module's .target, 10 x major + minor.
  int target_capability() const;
  /// MatrixProduct::hardware of the module's matrix products.
  int tensor_hardware() const;
  /// Fails unless the module's .target is of `capability` (10 x major + minor) or higher. `what`: "ldmatrix".
  void require_target(int capability, std::string_view what) const;
  /// The elements of a vector operand that must have `count` of them.
  const std::vector<ptx::Operand>& vector(const ptx::Operand& operand, size_t count) const;

  /// A source of the type's width: a register, or a constant from a literal or a variable's address.
  RegisterId read(const ptx::Operand& operand, ptx::Type type);
  /// A destination of the type's width; for "_", a register that nothing reads.
  RegisterId write(const ptx::Operand& operand, ptx::Type type);
  /// A source or destination of any width, for instructions that convert.
  RegisterId any(const ptx::Operand& operand);
  /// A predicate to read. `negated` is set for !p.
  RegisterId read_predicate(const ptx::Operand& operand, bool& negated);
  /// A predicate to write; for "_", one that nothing reads.
  RegisterId write_predicate(const ptx::Operand& operand);
  bool is_sink(const ptx::Operand& operand) const;
  bool is_predicate(const ptx::Operand& operand) const;
  /// Whether it names a register that the kernel has declared; special ones have names of their own.
  bool is_declared_register(const ptx::Operand& operand) const;
  /// The constant of an operand that must be a literal.
  int64_t literal(const ptx::Operand& operand) const;

  RegisterId constant(uint64_t bits, RegisterClass width);
  RegisterId constant_predicate(bool value);
  RegisterId special(Special what, RegisterClass width);
  RegisterId temporary(RegisterClass width);
  /// The predicate that holds CC.CF.
  RegisterId carry_flag();
  RegisterClass width(RegisterId id) const;

  /// Where an address operand points. `base` is a register with an address (32 or 64 bits), never none.
  struct Address {
    ptx::Space space = ptx::Space::generic;
    RegisterId base = 0;
    int64_t offset = 0;
    bool kernel_parameter = false;  ///< no base: `offset` into the parameter block, `bytes` to its end
  };
  Address address(const ptx::Operand& operand, ptx::Space space);
  /// Bytes of the parameter block.
  uint32_t kernel_parameter_bytes() const;
  /// Takes the modifiers of memory order and scope; `otherwise` if there are none.
  uint8_t memory_order(uint8_t otherwise);
  /// There is an access of so many bytes to `space`.
  void note_access(ptx::Space space, uint32_t bytes);
  /// Threads may be put in order by less than a barrier of the block or a synchronisation of a whole warp.
  void note_partial_synchronisation();

  LabelId label(const ptx::Operand& operand);
  const ptx::BranchTargets& branch_table(const ptx::Operand& operand);
  LabelId label_named(std::string_view name);
  LabelId new_label();
  void place_label(LabelId label);

  /// Appends an operation under the instruction's guard. `handler` must not be null: fails otherwise, since the
  /// instruction then does not exist for its types.
  Operation& emit(Handler handler, InstructionClass counted_as);
  Operation& emit(HandlerPair handlers, InstructionClass counted_as);
  /// The same without the guard.
  Operation& emit_unguarded(Handler handler, InstructionClass counted_as);

  RegisterId guard() const { return guard_; }
  Lowering& lowering() { return lowering_; }

 private:
  Entity entity(std::string_view name) const;
  RegisterId register_named(std::string_view name) const;
  RegisterId address_of(const VariableName& variable, int64_t offset, RegisterClass width);

  Lowering& lowering_;
  const ptx::Instruction& instruction_;
  const UnitTable& units_;
  RegisterId guard_;
};

/// Decodes one instruction.
using Decoder = void (*)(DecodeContext&);

struct DecoderEntry {
  std::string_view opcode;
  Decoder decode;
};

/// Whether a scope of memory order is the block: "cta", and "cluster", as launches of clusters are refused.
bool is_block_scope(std::string_view scope);

RegisterClass class_of(ptx::Type type);
/// The integer type of the same width: b16, b32, b64.
ptx::Type bits_type(RegisterClass width);

}  // namespace kiln::emulator
