// The lines of a pack, read without allocating. docs/cache-format.md has the grammar.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/cache/record.h"

namespace kiln::cache {

enum class PackTag { header, device, mark, request, record, end, blank, unknown };

struct PackLine {
  std::size_t number = 0;  ///< From 1.
  std::size_t begin = 0;   ///< Where in its block it begins.
  PackTag tag = PackTag::blank;
  std::string_view fields;  ///< Text behind the tag's tab.
};

/// Goes through the lines of a text that may come in blocks of whole lines; a trailing CR belongs to the line break.
/// Comments and empty lines are `blank`.
class PackLines {
 public:
  /// `before`: the number of lines that come before the block.
  explicit PackLines(std::string_view block = {}, std::size_t before = 0)
      : block_(block), rest_(block), number_(before) {}
  /// Goes on with the next block.
  void feed(std::string_view block) { block_ = rest_ = block; }
  /// False at the end of the block.
  bool next(PackLine& line);

 private:
  std::string_view block_;
  std::string_view rest_;
  std::size_t number_;
};

/// Takes the next tab-separated field off `rest`; nullopt once there is none.
class PackFields {
 public:
  explicit PackFields(std::string_view fields) : rest_(fields) {}
  std::optional<std::string_view> next();
  std::optional<std::string_view> rest() const { return rest_; }

 private:
  std::optional<std::string_view> rest_;
};

/// Why a line can be refused before its fields are looked at: its length, a NUL, broken UTF-8.
std::optional<std::string> refuse_bytes(std::string_view line);

/// The text of a field: `field` itself if it has no escapes, else its meaning, in `storage`. nullopt for a broken
/// escape.
std::optional<std::string_view> field_text(std::string_view field, std::string& storage);

/// A whole number or a decimal number, nothing before or after it.
std::optional<std::int64_t> field_integer(std::string_view field);
std::optional<double> field_number(std::string_view field);

/// The fields of a record line that decide about winning. Texts are still escaped.
struct PackHead {
  std::string_view algorithm;
  std::string_view algorithm_digest;
  std::string_view config;
  std::string_view outcome;
  TimeKind kind = TimeKind::measured;
  double seconds = 0;
  std::int64_t workspace_bytes = 0;
  bool deterministic = true;
};

/// Thrown by the parsers below: why a line is refused. Caught where the line's number is known.
struct PackFault {
  std::string reason;
};

/// Takes the head's fields off `fields`. Throws PackFault.
PackHead parse_head(PackFields& fields);
DeviceEntry parse_device(std::string_view fields);
/// The accuracy that a line of the tag `predicted` says of `device`, the one of the line before it.
std::string parse_mark(std::string_view fields, const DeviceEntry& device);
/// The request of a request line, unescaped.
std::string parse_request(std::string_view fields);
/// The library version in the header. Throws PackFault for another format or version.
std::string parse_header(const PackLine& line);

/// Throws PackFault for a time that no kernel takes.
void require_possible(TimeKind kind, std::string_view outcome, double seconds);
/// Throws PackFault if a taken time does not fit the device: measured on an emulated one, modelled on a real one.
void require_kind(TimeKind kind, const DeviceEntry& device);

}  // namespace kiln::cache
