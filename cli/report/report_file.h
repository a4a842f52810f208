// A file that takes its name when it is complete.
#pragma once

#include <fstream>
#include <string>

namespace kiln::cli {

/// Made before hours of tuning, so that a path that cannot be written is known at once; gone without a trace unless
/// publish() is called.
class ReportFile {
 public:
  /// Throws Error(io_error) if `path`'s folder cannot be written.
  explicit ReportFile(const std::string& path);
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  /// Writes `text` and gives it the path's name, in place of what was there. Throws Error(io_error).
  void publish(const std::string& text);

 private:
  std::string path_, partial_;
  std::ofstream stream_;
};

}  // namespace kiln::cli
