// Elements of tensors that are in files beside the model.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kiln::onnx_frontend {

/// Reads from files in one model's folder, and below it. A model is data from outside: nothing is read that lies
/// elsewhere, or is no regular file. Download caches keep a model and its data as links to files of one other folder:
/// where the model itself is such a link, links to files beside the one that it leads to are followed, too.
class ExternalData {
 public:
  /// `model`: the path of its file.
  explicit ExternalData(const std::string& model);

  /// The `bytes` bytes of `tensor`, as its external_data entries say.
  ///
  /// Throws Error(parse_error) for a location that leaves the folder, by a symbolic link too, for what is no regular
  /// file, for an offset or length that is no number, is another than `bytes`, or ends behind the file;
  /// Error(io_error) where it cannot be read; Error(unsupported) where tensors ask for much more than the files hold,
  /// as with holes, or with one part for many.
  std::string read(const onnx::TensorProto& tensor, uint64_t bytes);

  /// The files that were read, as absolute paths.
  std::vector<std::string> files() const;

 private:
  std::string folder_;                 // of the model's path; empty for the working directory
  std::string store_;                  // folder of the file that the model is a link to; empty where it is none
  std::set<std::string> seen_;         // locations that were read
  uint64_t read_ = 0;                  // bytes, of all tensors
  uint64_t most_ = uint64_t{1} << 28;  // of these: some tensors may share a part, and files may have holes of zeros
};

}  // namespace kiln::onnx_frontend
