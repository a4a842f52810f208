#include "variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace kiln::emulator {
namespace {

constexpr uint64_t usual_alignment = 256;
constexpr uint64_t most_bytes = uint64_t{1} << 32;

std::shared_ptr<std::byte[]> aligned_memory(uint64_t bytes, uint64_t alignment) {
  const std::align_val_t aligned{alignment};
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, aligned));
  std::memset(memory, 0, bytes);
  return {memory, [=](std::byte* p) { ::operator delete(p, aligned); }};
}

/// Offsets for variables, one behind the other.
class Layout {
 public:
  struct Place {
    const ptx::Variable* variable;
    uint64_t offset;
  };

  void add(const ptx::Variable& variable) {
    const uint64_t alignment = std::max<uint64_t>(variable.alignment, 16);
    strictest_ = std::max(strictest_, alignment);
    end_ = (end_ + alignment - 1) / alignment * alignment;
    places_.push_back({&variable, end_});
    end_ += variable.size() + 64;  // a gap, so that running over the end is noticed
    if (end_ > most_bytes) {
      throw LoadError(variable.line, fmt::format("with '{}' the module's variables have more than {} bytes",
                                                 variable.name, most_bytes));
    }
  }
  const std::vector<Place>& places() const { return places_; }
  uint64_t end() const { return end_; }
  uint64_t alignment() const { return strictest_; }

 private:
  std::vector<Place> places_;
  uint64_t end_ = 0, strictest_ = usual_alignment;
};

uint64_t address_of(const ModuleNames& names, const ptx::Initialiser& value, uint32_t line) {
  const auto entity = names.scope.find(value.symbol);
  const auto* variable = entity ? std::get_if<VariableName>(&*entity) : nullptr;
  if (variable == nullptr) {
    throw LoadError(line, fmt::format("'{}' in an initialiser is not a .global or .const variable", value.symbol));
  }
  return variable->place + value.bits;
}

void initialise(const ptx::Variable& variable, std::byte* at, const ModuleNames& names) {
  const uint32_t bytes = ptx::bytes(variable.type);
  if (variable.values.size() > variable.elements) {
    throw LoadError(variable.line, fmt::format("'{}' has more initial values than elements", variable.name));
  }
  for (const ptx::Initialiser& value : variable.values) {
    uint64_t bits = value.bits;
    if (!value.symbol.empty()) {
      bits = address_of(names, value, variable.line);
      if (value.mask_byte < 8) {
        bits = bits >> (8 * value.mask_byte) & 0xFF;
      } else if (bytes != 8) {
        throw LoadError(variable.line, "an address needs 64 bits");
      }
    }
    std::memcpy(at, &bits, bytes);
    at += bytes;
  }
}

}  // namespace

void place_variables(const ptx::Module& module, Program& program, ModuleNames& names) {
  Layout layout;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space == ptx::Space::constant) layout.add(variable);
  }
  const uint64_t constants_end = layout.end();
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space == ptx::Space::shared) {
      names.scope.declare(variable.name, UnplacedShared{&variable});
    } else if (variable.space == ptx::Space::global) {
      layout.add(variable);
    } else if (variable.space != ptx::Space::constant) {
      throw LoadError(variable.line,
                      fmt::format("variable '{}' stands in a state space that a module cannot use", variable.name));
    }
  }
  program.memory = aligned_memory(layout.end() + 1, layout.alignment());
  program.constants = {program.memory.get(), constants_end};
  const auto base = reinterpret_cast<uint64_t>(program.memory.get());
  for (const auto& [variable, offset] : layout.places()) {
    names.scope.declare(variable->name, VariableName{variable->space, base + offset, variable->size()});
    program.variables.push_back({std::string(variable->name), base + offset, variable->size()});
    if (variable->size() == 0) continue;
    program.regions.push_back({base + offset, base + offset + variable->size(),
                               fmt::format("global variable {} of {} bytes", variable->name, variable->size())});
  }
  for (const auto& [variable, offset] : layout.places()) initialise(*variable, program.memory.get() + offset, names);
}

}  // namespace kiln::emulator
