// The syntax tree of a PTX module. Names are views into the module's text, which must outlive the tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "ptx/type.h"

namespace kiln::emulator::ptx {

struct Operand {
  enum class Kind : uint8_t {
    name,     ///< register, label, function or variable; `offset` for "variable+4"
    integer,  ///< `bits`
    f32,      ///< `bits`, a single precision pattern (0f...)
    f64,      ///< `bits`, a double precision pattern (0d... or a decimal literal)
    address,  ///< [name+offset], or [offset] when the name is empty; `elements`: further parts of a tensor address
    vector,   ///< {elements}
    list,     ///< (elements) of a call
    pair,     ///< p|q
  };
  Kind kind = Kind::name;
  bool negated = false;  ///< !p
  uint32_t line = 0;
  std::string_view name = {};
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> elements = {};
};

struct Instruction {
  uint32_t line = 0;
  std::string_view text;   ///< As written, guard included, without the semicolon.
  std::string_view guard;  ///< Empty when there is none.
  bool guard_negated = false;
  std::string_view opcode;                  ///< "ld"
  std::vector<std::string_view> modifiers;  ///< {"global", "v4", "f32"}
  std::vector<Operand> operands;
};

/// .reg .f32 %f<8>; declares %f0 ... %f7. `count` is 0 for a plain name.
struct RegisterDeclaration {
  Type type = Type::none;
  std::string_view name = {};
  uint32_t count = 0;
  uint32_t line = 0;
};

/// One element of an initialiser: a literal, or the address of a symbol plus an offset.
struct Initialiser {
  uint64_t bits = 0;
  std::string_view symbol;  ///< Empty for a literal; `bits` is then the value.
  uint32_t mask_byte = 8;   ///< 0..7: only that byte of the address (PTX's 0xFF00(symbol)); 8: the whole.
};

struct Variable {
  Space space = Space::global;
  Type type = Type::none;
  uint32_t alignment = 1;
  std::string_view name;
  uint64_t elements = 1;
  bool unsized = false;  ///< extern shared array[]
  std::vector<Initialiser> values;
  uint32_t line = 0;
  uint64_t size() const { return elements * bytes(type); }
};

struct Label {
  std::string_view name;
  uint32_t line = 0;
};

/// name: .branchtargets L1, L2;  (the table of a brx.idx)
struct BranchTargets {
  std::string_view name;
  std::vector<std::string_view> targets = {};
  uint32_t line = 0;
};

struct Block;
using Statement =
    std::variant<Instruction, RegisterDeclaration, Variable, Label, BranchTargets, std::unique_ptr<Block>>;

/// { ... }: a scope of its own for registers, variables and labels.
struct Block {
  std::vector<Statement> statements;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  uint32_t line = 0;
  std::vector<Variable> returns, parameters;
  uint32_t max_threads = 0;  ///< product of .maxntid or .reqntid; 0 if absent
  /// Extents that a block must have, from .reqntid. Empty if absent; extents left out are 1.
  std::vector<uint32_t> required_block;
  bool needs_cluster = false;   ///< blocks must be launched in clusters of several, or of a size given at the launch
  std::unique_ptr<Block> body;  ///< Null for a declaration.
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;
  std::string_view target;
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

}  // namespace kiln::emulator::ptx
