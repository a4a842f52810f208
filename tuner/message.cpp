#include "message.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln::tuner {
namespace {

using nlohmann::json;

// Far above anything sent; what exceeds them is garbage, not a message.
constexpr size_t max_line = size_t{1} << 20;
constexpr size_t max_payload = size_t{1} << 30;

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::parse_error, fmt::format("this is no message of a worker: {}", what));
}

}  // namespace

std::string encode(const Message& message) {
  json fields = message.fields;
  if (!message.payload.empty()) fields["payload"] = message.payload.size();
  // Compiler logs may hold anything: what is not UTF-8 is replaced.
  return fields.dump(-1, ' ', false, json::error_handler_t::replace) + "\n" + message.payload;
}

std::optional<Message> MessageReader::next() {
  if (!started_) {
    const size_t end = buffer_.find('\n');
    if (end == std::string::npos) {
      if (buffer_.size() > max_line) refuse("a line without end");
      return std::nullopt;
    }
    json fields = json::parse(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    if (!fields.is_object()) refuse(fmt::format("'{}'", buffer_.substr(0, std::min<size_t>(end, 80))));
    buffer_.erase(0, end + 1);
    const json length = fields.value("payload", json(0));
    if (!length.is_number_unsigned() && length != 0) refuse("a payload of no length");
    payload_bytes_ = length.get<size_t>();
    if (payload_bytes_ > max_payload) refuse("a payload beyond all measure");
    started_.emplace().fields = std::move(fields);
  }
  if (buffer_.size() < payload_bytes_) return std::nullopt;
  started_->payload = buffer_.substr(0, payload_bytes_);
  buffer_.erase(0, payload_bytes_);
  return std::exchange(started_, std::nullopt);
}

}  // namespace kiln::tuner
