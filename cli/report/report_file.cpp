#include "report/report_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "kiln/base/error.h"

namespace kiln::cli {

ReportFile::ReportFile(const std::string& path) : path_(path), partial_(path + ".partial"), stream_(partial_) {
  if (!stream_) throw Error(ErrorCode::io_error, fmt::format("cannot write {}", partial_), "name a file to be made");
}

ReportFile::~ReportFile() {
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void ReportFile::publish(const std::string& text) {
  stream_ << text;
  stream_.close();
  std::error_code error;
  if (stream_) std::filesystem::rename(partial_, path_, error);
  if (!stream_ || error) throw Error(ErrorCode::io_error, fmt::format("cannot write {}", path_));
}

}  // namespace kiln::cli
