#include "npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "database.h"
#include "kiln/base/checked.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"

namespace kiln::cli {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// NumPy's names of element types, without the byte order.
const std::map<std::string, std::string, std::less<>>& types() {
  static const std::map<std::string, std::string, std::less<>> all = {
      {"f4", "float"}, {"f8", "double"}, {"f2", "float16"}, {"i8", "int64"}, {"i4", "int32"},
      {"i2", "int16"}, {"u2", "uint16"}, {"i1", "int8"},    {"u1", "uint8"}, {"b1", "bool"}};
  return all;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("{} {}", path, what), "numpy.save() writes such files");
}

/// Text behind `'key': ` in the header, which is a dictionary as Python writes it.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) fail(path, fmt::format("has a header without '{}'", key));
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<int64_t> extents_in(const std::string& path, std::string_view text) {
  std::vector<int64_t> extents;
  if (!text.starts_with('(')) fail(path, "has a shape that is no tuple");
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size();
  while (at != end && *at != ')') {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0) fail(path, "has a shape that is no list of extents");
    extents.push_back(extent);
    at = stop;
  }
  return extents;
}

struct Header {
  std::string_view text;
  size_t bytes;  ///< Bytes in front of the elements.
};

Header header_of(const std::string& path, std::string_view file) {
  constexpr size_t version_end = 8;
  if (!file.starts_with(magic) || file.size() < 12) fail(path, "is no .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file[i])); };
  const bool is_short = byte(6) == 1;
  const size_t start = version_end + (is_short ? 2 : 4);
  size_t length = byte(8) | byte(9) << 8;
  if (!is_short) length |= byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - start) fail(path, "is cut short");
  return {file.substr(start, length), start + length};
}

/// Elements that stand with their first dimension innermost, in logical order.
std::vector<std::byte> in_logical_order(const std::vector<std::byte>& columns, const std::vector<int64_t>& extents,
                                        size_t size) {
  std::vector<std::byte> rows(columns.size());
  std::vector<int64_t> at(extents.size(), 0);
  for (size_t i = 0; i < columns.size() / size; ++i) {
    size_t position = 0;
    for (size_t d = 0; d < extents.size(); ++d)
      position = position * static_cast<size_t>(extents[d]) + static_cast<size_t>(at[d]);
    std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(i * size), size,
                rows.begin() + static_cast<std::ptrdiff_t>(position * size));
    for (size_t d = 0; d < extents.size() && ++at[d] == extents[d]; ++d) at[d] = 0;
  }
  return rows;
}

}  // namespace

models::HostArray read_npy(const std::string& path) {
  require_file(path);
  std::ifstream stream(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad() || !stream.is_open()) {
    throw Error(ErrorCode::io_error, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  const Header header = header_of(path, file);
  std::string_view type = value_of(path, header.text, "descr");
  if (!type.starts_with('\'') && !type.starts_with('"')) {
    throw Error(ErrorCode::unsupported, fmt::format("{} holds records, expected numbers", path));
  }
  type = type.substr(1, type.find_first_of("'\"", 1) - 1);
  const auto known = type.empty() ? types().end() : types().find(type.substr(1));
  if (known == types().end() || type.front() == '>') {
    throw Error(ErrorCode::unsupported, fmt::format("{} holds elements of type '{}', which no model has", path, type),
                "convert them with astype()");
  }
  models::HostArray array{known->second, extents_in(path, value_of(path, header.text, "shape")), {}};
  const size_t size = models::size_of_type(array.type);
  const std::optional<int64_t> elements =
      checked_elements(array.extents, std::numeric_limits<int64_t>::max() / static_cast<int64_t>(size));
  if (!elements) {
    fail(path, fmt::format("has {} bytes of elements, and the shape {}, which no file holds",
                           file.size() - header.bytes, fmt::join(array.extents, "x")));
  }
  const size_t bytes = static_cast<size_t>(*elements) * size;
  if (file.size() - header.bytes != bytes) {
    fail(path, fmt::format("has {} bytes of elements, expected {}", file.size() - header.bytes, bytes));
  }
  array.bytes.resize(bytes);
  if (bytes > 0) std::memcpy(array.bytes.data(), file.data() + header.bytes, bytes);
  const bool columns_first = value_of(path, header.text, "fortran_order").starts_with("True");
  if (columns_first) array.bytes = in_logical_order(array.bytes, array.extents, size);
  return array;
}

void write_npy(const std::string& path, const models::HostArray& array) {
  models::HostArray written = array;
  if (std::none_of(types().begin(), types().end(), [&](const auto& type) { return type.second == array.type; })) {
    written = models::converted(array, "float");
  }
  const auto type = std::find_if(types().begin(), types().end(),
                                 [&](const auto& candidate) { return candidate.second == written.type; });
  const bool one_byte = models::size_of_type(written.type) == 1;
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", one_byte ? '|' : '<', type->first,
                  fmt::join(written.extents, ", "), written.extents.size() == 1 ? "," : "");
  constexpr size_t alignment = 64, prefix = 10;  // magic, version and length
  header.resize((prefix + header.size() + 1 + alignment - 1) / alignment * alignment - prefix - 1, ' ');
  header += '\n';
  OutputFile file("the output", path);
  file.write(magic);
  const std::string start{'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file.write(start);
  file.write(header);
  file.write({reinterpret_cast<const char*>(written.bytes.data()), written.bytes.size()});
  file.publish();
}

}  // namespace kiln::cli
