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
///
/// Only the call knows the function's signature; the rows are made by the type of an argument. (By signature, the table
/// of all functions took 40 s to compile.)
class ArgumentRows {
 public:
  /// `names`: those of the arguments. `good`: arguments of a call that succeeds; what they point to must outlive the
  /// rows.
  template <class... Arguments>
  ArgumentRows(std::string function_name, kiln_status (*function)(Arguments...), std::vector<std::string> names,
               std::set<std::string> optional, Arguments... good)
      : name_(std::move(function_name)),
        names_(std::move(names)),
        optional_(std::move(optional)),
        keeps_tensors_(!std::is_same_v<std::tuple_element_t<0, std::tuple<Arguments...>>, kiln_context*>),
        call_([function, good...](size_t position, void* bad) {
          return [&]<size_t... I>(std::index_sequence<I...>) {
            return function(other_if(I == position, bad, good)...);
          }
          (std::index_sequence_for<Arguments...>());
        }) {
    size_t position = 0;
    (add(position++, good), ...);
  }

  const std::vector<Case>& rows() const { return rows_; }

 private:
  template <class Argument>
  static Argument other_if(bool is_bad, void* bad, Argument good) {
    if constexpr (std::is_pointer_v<Argument>) return is_bad ? static_cast<Argument>(bad) : good;
    return good;
  }

  template <class Argument>
  void add(size_t position, Argument good) {
    if constexpr (std::is_pointer_v<Argument>) {
      using Value = std::remove_pointer_t<Argument>;
      if (!optional_.contains(names_[position])) add_null(position);
      if constexpr (std::is_same_v<Argument, const kiln_tensor*>) add_tensor(position, *good);
      if constexpr (requires { good->size; }) {
        add_structure<std::remove_const_t<Value>, std::is_const_v<Value>>(position, *good);
      }
    }
  }

  // A row of the good call, whose argument at `position` points to `bad`.
  template <class Value>
  void add_row(std::string message, size_t position, const Value& bad) {
    rows_.push_back({std::move(message), [call = call_, position, bad = std::make_shared<Value>(bad)] {
                       return call(position, bad.get());
                     }});
  }

  void add_null(size_t position);
  void add_tensor(size_t position, const kiln_tensor& good);

  template <class Structure, bool is_input>
  void add_structure(size_t position, const Structure& good) {
    const auto row = [&](const std::string& message, const Structure& bad) {
      add_row(fmt::format("{}: {}", name_, message), position, bad);
    };
    for (const uint32_t size : {0u, 4u, UINT32_MAX}) {
      row(fmt::format("the structure's size is {}, expected {}", size, sizeof(Structure)),
          with(good, [&](Structure& s) { s.size = size; }));
    }
    struct Later {
      Structure known;
      uint64_t unknown;
    };
    add_row(name_ + ": the structure sets a field that this library does not have", position,
            with(Later{good, 1}, [](Later& later) { later.known.size = sizeof(Later); }));
    if constexpr (is_input) add_fields(good, row);
  }

  // The fields that structures of options have in common.
  template <class Structure, class Row>
  static void add_fields(const Structure& good, const Row& row) {
    const auto field = [&](const char* message, auto Structure::*member, int32_t value) {
      row(fmt::format(fmt::runtime(message), value), with(good, [&](Structure& s) {
            s.*member = static_cast<std::remove_reference_t<decltype(s.*member)>>(value);
          }));
    };
    const auto flag = [&](const char* name, int32_t Structure::*member) {
      for (const int32_t value : {-1, 2}) field((std::string(name) + " is {}, expected 0 or 1").c_str(), member, value);
    };
    if constexpr (requires { &Structure::reserved; }) field("reserved is {}, expected 0", &Structure::reserved, 1);
    if constexpr (requires { &Structure::mode; }) {
      for (const int32_t mode : {-1, 99}) field("the mode is {}", &Structure::mode, mode);
    }
    if constexpr (requires { &Structure::reduction; }) {
      for (const int32_t reduction : {-1, 3}) field("the reduction is {}", &Structure::reduction, reduction);
    }
    if constexpr (requires { &Structure::dynamic_batch; }) flag("dynamic_batch", &Structure::dynamic_batch);
    if constexpr (requires { &Structure::deterministic; }) flag("deterministic", &Structure::deterministic);
    if constexpr (requires { &Structure::mirrored; }) flag("mirrored", &Structure::mirrored);
    if constexpr (requires { &Structure::tf32; }) flag("tf32", &Structure::tf32);
    if constexpr (requires { &Structure::fast; }) flag("fast", &Structure::fast);
    if constexpr (requires { &Structure::locked; }) flag("locked", &Structure::locked);
  }

  std::string name_;
  std::vector<std::string> names_;
  std::set<std::string> optional_;
  bool keeps_tensors_;                              // a null pointer in a tensor is told later
  std::function<kiln_status(size_t, void*)> call_;  // the good call, with another pointer at a position
  std::vector<Case> rows_;
};

}  // namespace kiln::capi
