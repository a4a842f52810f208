// Meanings of names in PTX: registers, variables, labels, tables, in nested scopes.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "decode/operation.h"
#include "ptx/ast.h"

namespace kiln::emulator {

struct RegisterName {
  RegisterId id = 0;
};
struct LabelName {
  LabelId id = 0;
};
/// A variable's place: a host address (global, const), or an offset (shared, local, param of the kernel).
struct VariableName {
  ptx::Space space = ptx::Space::global;
  uint64_t place = 0;
  uint64_t bytes = 0;
  bool dynamic_shared = false;
};
/// A shared variable of the module, which gets its place in each kernel that uses it.
struct UnplacedShared {
  const ptx::Variable* variable = nullptr;
};
struct BranchTable {
  const ptx::BranchTargets* targets = nullptr;
};
using Entity = std::variant<RegisterName, LabelName, VariableName, UnplacedShared, BranchTable>;

class Scope {
 public:
  void declare(std::string_view name, Entity entity) { names_.insert_or_assign(name, entity); }
  /// .reg .f32 %f<8>: %f0 ... %f7 are `first` and the following.
  void declare_range(std::string_view prefix, uint32_t count, RegisterId first) {
    ranges_.push_back({prefix, count, first});
  }
  std::optional<Entity> find(std::string_view name) const;

 private:
  struct Range {
    std::string_view prefix;
    uint32_t count;
    RegisterId first;
  };
  std::unordered_map<std::string_view, Entity> names_;
  std::vector<Range> ranges_;
};

}  // namespace kiln::emulator
