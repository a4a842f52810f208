// The bytes of a pack file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

/// A pack file, opened. Reading copies: a mapped file would take the process down when someone cuts it short. Only
/// regular files, up to max_pack_file; of a line beyond max_pack_line just as much is read as shows that it is too
/// long. Every member throws Error(io_error), naming the path.
class PackReader {
 public:
  explicit PackReader(const std::string& path);
  PackReader(const PackReader&) = delete;
  PackReader& operator=(const PackReader&) = delete;
  ~PackReader();

  /// The next block of whole lines (the last may lack its line break), valid until the next call; empty at the end.
  std::string_view next_block();

 private:
  std::size_t read_some(char* to, std::size_t room);
  std::string_view cut_line();

  const std::string path_;
  int descriptor_ = -1;
  std::vector<char> buffer_;
  std::size_t carried_ = 0;  // bytes that belong to the next block
  std::size_t given_ = 0;    // where in buffer_ they are
};

/// All of it.
std::string read_pack_text(const std::string& path);

}  // namespace kiln::cache
