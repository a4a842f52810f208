#include "onnx/message_count.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx_pb.h>

#include <cstdint>

namespace kiln::onnx_frontend {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

class Counter {
 public:
  Counter(google::protobuf::io::CodedInputStream& file, size_t most) : file_(file), most_(most) {}

  size_t count() const { return count_; }

  /// Whether the message of that type goes on as one does, and no more than `most` were counted.
  bool read(const Descriptor& type, int depth = 0) {
    constexpr int most_depth = 100;  // as protobuf's parser
    if (depth > most_depth) return false;
    while (const uint32_t tag = file_.ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (field == nullptr && ++count_ > most_) return false;
        if (!WireFormatLite::SkipField(&file_, tag)) return false;
        continue;
      }
      const Descriptor* inner = field == nullptr ? nullptr : field->message_type();
      const bool is_text = field == nullptr || field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      if ((inner != nullptr || is_text) && ++count_ > most_) return false;
      if (!read_bytes(inner, depth)) return false;
    }
    return file_.ConsumedEntireMessage();
  }

 private:
  /// Reads the field behind a length: a message of type `inner`, or bytes.
  bool read_bytes(const Descriptor* inner, int depth) {
    uint32_t bytes = 0;
    if (!file_.ReadVarint32(&bytes) || static_cast<int32_t>(bytes) < 0) return false;
    if (inner == nullptr) return file_.Skip(static_cast<int>(bytes));
    const auto limit = file_.PushLimit(static_cast<int>(bytes));
    const bool is_whole = read(*inner, depth + 1);
    file_.PopLimit(limit);
    return is_whole;
  }

  google::protobuf::io::CodedInputStream& file_;
  size_t most_;
  size_t count_ = 0;
};

}  // namespace

size_t count_messages(const std::string& path, size_t most) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  google::protobuf::io::FileInputStream file(descriptor);
  file.SetCloseOnDelete(true);
  google::protobuf::io::CodedInputStream coded(&file);
  Counter counter(coded, most);
  (void)counter.read(*onnx::ModelProto::descriptor());
  return counter.count();
}

}  // namespace kiln::onnx_frontend
