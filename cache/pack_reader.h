// The bytes of a pack.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

/// A pack that stays open: a file, or a text in memory. Reading copies: a mapped file would take the process down when
/// someone cuts it short. Only regular files, up to max_pack_file. A file that another takes the place of is read on
/// as it was. Thread-safe; may be read on after fork().
class PackFile {
 public:
  /// Throws Error(io_error), naming the path.
  explicit PackFile(const std::string& path);
  struct Text {
    std::string text;
  };
  explicit PackFile(Text text) : text_(std::move(text.text)) {}
  PackFile(const PackFile&) = delete;
  PackFile& operator=(const PackFile&) = delete;
  ~PackFile();

  /// Bytes that were read, 0 at the end. Throws Error(io_error), naming the path.
  std::size_t read(std::size_t offset, char* to, std::size_t room) const;
  /// Throws Error(io_error) if the file is not what it was when it was opened.
  void require_unchanged() const;

 private:
  const std::string path_;
  const std::string text_;  // where there is no file
  int descriptor_ = -1;
  struct stat opened_ = {};
};

/// Bytes of a pack: [begin, end).
struct PackRange {
  std::size_t begin = 0;
  std::size_t end = std::numeric_limits<std::size_t>::max();
};

/// Reads a pack, or a range of whole lines, block by block; of a line beyond max_pack_line just as much is kept in
/// memory as shows that it is too long. Every member throws Error(io_error), naming the path.
class PackReader {
 public:
  explicit PackReader(const PackFile& file, PackRange range = {});

  /// The next block of whole lines (the last may lack its line break), valid until the next call; empty at the end.
  std::string_view next_block();
  /// Where in the pack that block begins.
  std::size_t block_begin() const { return block_begin_; }

 private:
  std::size_t read_some(char* to, std::size_t room);
  std::string_view cut_line();

  const PackFile& file_;
  std::size_t position_;  // of what is read next
  const std::size_t end_;
  std::size_t block_begin_ = 0;
  std::vector<char> buffer_;
  std::size_t carried_ = 0;  // bytes that belong to the next block
  std::size_t given_ = 0;    // where in buffer_ they are
};

/// All of it. Throws Error(io_error), naming the path.
std::string read_pack_text(const std::string& path);

}  // namespace kiln::cache
