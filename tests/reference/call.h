// A request with memory for its operands, for the tests of the reference.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/reference/convert.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {

struct Call {
  Request request;
  std::map<std::string, std::vector<std::byte>> memory;
  float alpha = 1, beta = 0, clip_lo = -1, clip_hi = 1;
  int64_t n = -1;

  /// Every operand, y too, holds values drawn from `values`.
  explicit Call(std::string_view line, Values values = Values::uniform) : request(Request::parse(line)) {
    uint64_t seed = 1;
    for (const Operand& operand : request.operands) {
      memory[operand.name] = filled(operand.spec, values, seed++);
    }
  }

  /// Gives an operand its elements in logical order.
  Call& set(const std::string& operand, const std::vector<double>& elements) {
    const TensorSpec& spec = request.at(operand);
    size_t next = 0;
    for_each_coordinate(spec,
                        [&](std::span<const int64_t> at) { write(spec, memory[operand], at, elements.at(next++)); });
    return *this;
  }

  Bindings bindings() const {
    Bindings bindings;
    for (const auto& [name, bytes] : memory) {
      bindings.operands[name] = bytes;
    }
    bindings.values.alpha = alpha;
    bindings.values.beta = beta;
    bindings.values.clip_lo = clip_lo;
    bindings.values.clip_hi = clip_hi;
    bindings.values.n = n;
    return bindings;
  }

  std::vector<double> results() const { return evaluate(request, bindings()); }

  /// The results rounded to storage, laid out as y: what a perfect kernel leaves behind.
  std::vector<std::byte> perfect_output() const {
    const Oracle oracle(request, bindings());
    std::vector<std::byte> bytes = memory.at("y");
    for_each_coordinate(oracle.output(),
                        [&](std::span<const int64_t> at) { write(oracle.output(), bytes, at, oracle.at(at).value); });
    return bytes;
  }
};

}  // namespace kiln::reference
