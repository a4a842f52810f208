// Tables of values by opcode, in groups.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::timing {

/// Values by opcode. Groups hold a value, and the opcodes that have it with blanks between.
template <class Value>
class OpcodeTable {
 public:
  OpcodeTable(std::initializer_list<std::pair<Value, std::string_view>> groups) {
    for (auto [value, opcodes] : groups) {
      while (!opcodes.empty()) {
        const std::string_view opcode = opcodes.substr(0, opcodes.find(' '));
        values_.emplace(opcode, value);
        opcodes.remove_prefix(opcode.size());
        opcodes.remove_prefix(opcodes.empty() ? 0 : 1);
      }
    }
  }

  /// Null if it is not in a group.
  const Value* find(std::string_view opcode) const {
    const auto found = values_.find(opcode);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace kiln::timing
