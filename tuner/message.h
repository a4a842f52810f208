// Messages between a session and its workers: a line of JSON, then raw bytes if it announces some.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::tuner {

struct Message {
  nlohmann::json fields = nlohmann::json::object();
  std::string payload;  ///< Announced by the line's "payload": its length in bytes.
};

std::string encode(const Message& message);

/// Takes a stream of bytes apart.
class MessageReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next complete message; nothing until more is fed. Throws Error(parse_error) if the bytes are no message.
  std::optional<Message> next();
  /// Whether bytes are there that no message that was taken needed.
  bool has_more() const { return !buffer_.empty(); }

 private:
  std::string buffer_;
  std::optional<Message> started_;  // its line is read, its payload is not complete
  size_t payload_bytes_ = 0;
};

}  // namespace kiln::tuner
