#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "evaluator.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {
namespace {

std::unique_ptr<const Oracle::Evaluator> evaluator(const Request& request, const Bindings& bindings,
                                                   std::string_view output) {
  const std::string name = output.empty() ? result_of(request).name : std::string(output);
  if (request.find(name) == nullptr || !is_written(request, name)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no output {}", request.key(), name));
  }
  const int64_t n = bindings.values.n;
  Request call = request.dynamic_batch ? request.with_batch(n < 0 ? request.batch() : n) : request;
  return reference_of(request.operation).evaluator(std::move(call), bindings, name);
}

}  // namespace

Reference reference_of(std::string_view operation) {
  struct Row {
    std::string_view operation;
    Reference (*reference)();
  };
#define KILN_ROW(name) {#name, name##_reference},
  static constexpr Row rows[] = {KILN_OPERATIONS(KILN_ROW)};
#undef KILN_ROW
  for (const Row& row : rows) {
    if (row.operation == operation) return row.reference();
  }
  throw Error(ErrorCode::unsupported, fmt::format("operation '{}' has no reference", operation));
}

Oracle::Oracle(const Request& request, const Bindings& bindings, std::string_view output)
    : evaluator_(evaluator(request, bindings, output)) {}
Oracle::~Oracle() = default;
Oracle::Oracle(Oracle&&) noexcept = default;
Oracle& Oracle::operator=(Oracle&&) noexcept = default;

Expected Oracle::at(std::span<const int64_t> coordinate) const {
  return evaluator_->at(coordinate);
}
std::vector<Expected> Oracle::at_each(std::span<const std::vector<int64_t>> coordinates) const {
  std::vector<Expected> expected(coordinates.size());
  for_each_index(coordinates.size(), [&](size_t i) { expected[i] = at(coordinates[i]); });
  return expected;
}
std::vector<Expected> Oracle::all() const {
  return evaluator_->all();
}
const TensorSpec& Oracle::output() const {
  return evaluator_->output();
}

Expected at(const Request& request, const Bindings& bindings, std::span<const int64_t> coordinate) {
  return Oracle(request, bindings).at(coordinate);
}

std::vector<double> evaluate(const Request& request, const Bindings& bindings, std::string_view output) {
  std::vector<double> values;
  for (const Expected& expected : Oracle(request, bindings, output).all()) {
    values.push_back(expected.value);
  }
  return values;
}

std::vector<Coordinate> sample_coordinates(const TensorSpec& spec, int64_t count, uint64_t seed) {
  const int64_t elements = spec.elements();
  std::vector<Coordinate> coordinates;
  std::set<int64_t> taken;
  const auto take = [&](int64_t index) {
    if (static_cast<int64_t>(coordinates.size()) < count && taken.insert(index).second) {
      coordinates.push_back(coordinate_of(spec, index));
    }
  };
  if (elements <= count) {
    for (int64_t index = 0; index < elements; ++index) {
      take(index);
    }
    return coordinates;
  }
  for (uint64_t corner = 0; corner < (uint64_t{1} << spec.extents.size()); ++corner) {
    int64_t index = 0;
    for (size_t d = 0; d < spec.extents.size(); ++d) {
      index = index * spec.extents[d] + (((corner >> d) & 1) != 0 ? spec.extents[d] - 1 : 0);
    }
    take(index);
  }
  for (uint64_t draw = 0; static_cast<int64_t>(coordinates.size()) < count; ++draw) {
    take(static_cast<int64_t>(random_bits(seed, draw) % static_cast<uint64_t>(elements)));
  }
  return coordinates;
}

}  // namespace kiln::reference
