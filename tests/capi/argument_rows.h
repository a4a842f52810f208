// Bad arguments of a function of the C API, made from how it is declared and from one call of it that is right.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::capi {

struct Case {
  std::string message;  ///< A part of kiln_last_error().
  std::function<kiln_status()> call;
  kiln_status status = KILN_INVALID_ARGUMENT;
};

void expect_refused(const std::vector<Case>& cases);

/// A copy of `value` that `edit` has spoilt.
template <class Value, class Edit>
Value with(Value value, const Edit& edit) {
  edit(value);
  return value;
}

/// Everything about a function that can be said of its arguments one by one.
///
/// Pointers: NULL, unless the argument is `optional`. Tensors: an unknown dtype, ranks out of range, negative extents
/// and strides, too many elements, no data or data between elements. Structures with a size: sizes that no version has,
/// a field that this library does not know, flags and modes out of range.
template <class... Arguments>
class ArgumentRows {
 public:
  using Function = kiln_status (*)(Arguments...);

  /// `names`: those of the arguments. `good`: arguments of a call that succeeds; what they point to must outlive the
  /// rows.
  ArgumentRows(std::string function_name, Function function, std::vector<std::string> names,
               std::set<std::string> optional, Arguments... good)
      : name_(std::move(function_name)),
        function_(function),
        names_(std::move(names)),
        optional_(std::move(optional)),
        good_(good...) {}

  std::vector<Case> rows() const {
    std::vector<Case> rows;
    add_all(rows, std::index_sequence_for<Arguments...>());
    return rows;
  }

 private:
  using Tuple = std::tuple<Arguments...>;

  template <size_t... I>
  void add_all(std::vector<Case>& rows, std::index_sequence<I...>) const {
    (add<I>(rows), ...);
  }

  template <size_t I>
  void add(std::vector<Case>& rows) const {
    using Argument = std::tuple_element_t<I, Tuple>;
    if constexpr (std::is_pointer_v<Argument>) {
      using Value = std::remove_const_t<std::remove_pointer_t<Argument>>;
      const bool nullable = optional_.contains(names_[I]);
      if (!nullable) rows.push_back({fmt::format("{}: {} is NULL", name_, names_[I]), calling<I>(nullptr)});
      if constexpr (std::is_same_v<Argument, const kiln_tensor*>) add_tensor<I>(rows);
      if constexpr (requires(Argument argument) { argument->size; }) add_structure<I, Value>(rows);
    }
  }

  // The good call with another argument `I`.
  template <size_t I>
  std::function<kiln_status()> calling(std::tuple_element_t<I, Tuple> bad) const {
    Tuple arguments = good_;
    std::get<I>(arguments) = bad;
    return [function = function_, arguments] { return std::apply(function, arguments); };
  }

  // The good call with argument `I` pointing to a copy that `edit` has spoilt.
  template <size_t I, class Value, class Edit>
  std::function<kiln_status()> with_spoilt(const Edit& edit) const {
    const auto spoilt = std::make_shared<Value>(with(*std::get<I>(good_), edit));
    return [call = calling<I>(spoilt.get()), spoilt] { return call(); };
  }

  template <size_t I>
  void add_tensor(std::vector<Case>& rows) const {
    const std::string& tensor = names_[I];
    const auto row = [&](const std::string& message, const auto& edit) {
      rows.push_back({message, with_spoilt<I, kiln_tensor>(edit)});
    };
    for (const kiln_dtype dtype : {-1, 99}) {
      row(fmt::format("{}: the dtype of {} is {}", name_, tensor, dtype), [&](auto& t) { t.dtype = dtype; });
    }
    for (const int32_t rank : {INT32_MIN, 0, 6, INT32_MAX}) {
      row(fmt::format("{}: the rank of {} is {}, expected 1 to 5", name_, tensor, rank),
          [&](auto& t) { t.rank = rank; });
    }
    const std::string about = fmt::format("{}: {}: a tensor has ", name_, tensor);
    row(about + "the negative extent -3", [](auto& t) { t.extents[0] = -3; });
    row(about + "the negative stride -1", [](auto& t) { t.strides[t.rank - 1] = -1; });
    row(about + "more than 2^58 elements", [](auto& t) { t.extents[0] = t.strides[0] = INT64_MAX; });
    if constexpr (std::is_same_v<std::tuple_element_t<0, Tuple>, kiln_context*>) {  // others keep the tensor for later
      row(fmt::format("{} is a null pointer", tensor), [](auto& t) { t.data = nullptr; });
      row(fmt::format("{} has alignment 1", tensor), [](auto& t) { t.data = static_cast<const char*>(t.data) + 1; });
    }
  }

  template <size_t I, class Structure>
  void add_structure(std::vector<Case>& rows) const {
    const auto row = [&](const std::string& message, const auto& edit) {
      rows.push_back({fmt::format("{}: {}", name_, message), with_spoilt<I, Structure>(edit)});
    };
    for (const uint32_t size : {0u, 4u, UINT32_MAX}) {
      row(fmt::format("the structure's size is {}, expected {}", size, sizeof(Structure)),
          [&](auto& s) { s.size = size; });
    }
    add_later_version<I, Structure>(rows);
    if constexpr (std::is_const_v<std::remove_pointer_t<std::tuple_element_t<I, Tuple>>>) add_fields<Structure>(row);
  }

  template <size_t I, class Structure>
  void add_later_version(std::vector<Case>& rows) const {
    struct Later {
      Structure known;
      uint64_t unknown;
    };
    const auto later = std::make_shared<Later>(Later{*std::get<I>(good_), 1});
    later->known.size = sizeof(Later);
    rows.push_back({name_ + ": the structure sets a field that this library does not have",
                    [call = calling<I>(&later->known), later] { return call(); }});
  }

  // The fields that structures of options have in common.
  template <class Structure, class Row>
  static void add_fields(const Row& row) {
    if constexpr (requires(Structure s) { s.reserved; }) {
      row("reserved is 1, expected 0", [](auto& s) { s.reserved = 1; });
    }
    if constexpr (requires(Structure s) { s.mode; }) {
      row("the mode is -1", [](auto& s) { s.mode = -1; });
      row("the mode is 99", [](auto& s) { s.mode = 99; });
    }
    if constexpr (requires(Structure s) { s.reduction; }) {
      row("the reduction is -1", [](auto& s) { s.reduction = -1; });
      row("the reduction is 3", [](auto& s) { s.reduction = 3; });
    }
    const auto flag = [&](const char* name, int32_t Structure::*field) {
      for (const int32_t value : {-1, 2}) {
        row(fmt::format("{} is {}, expected 0 or 1", name, value), [&](auto& s) { s.*field = value; });
      }
    };
    if constexpr (requires { &Structure::dynamic_batch; }) flag("dynamic_batch", &Structure::dynamic_batch);
    if constexpr (requires { &Structure::accumulate; }) flag("accumulate", &Structure::accumulate);
    if constexpr (requires { &Structure::deterministic; }) flag("deterministic", &Structure::deterministic);
    if constexpr (requires { &Structure::mirrored; }) flag("mirrored", &Structure::mirrored);
    if constexpr (requires { &Structure::tf32; }) flag("tf32", &Structure::tf32);
    if constexpr (requires { &Structure::fast; }) flag("fast", &Structure::fast);
    if constexpr (requires { &Structure::locked; }) flag("locked", &Structure::locked);
  }

  std::string name_;
  Function function_;
  std::vector<std::string> names_;
  std::set<std::string> optional_;
  Tuple good_;
};

}  // namespace kiln::capi
