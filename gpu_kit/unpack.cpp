// unpack FOLDER: makes in that folder, which is there, the files that standard input holds: an .xz file of scripts/gpu.
// Linked statically, for machines without xz. Status 0 only if all files are written, down to the disk, and liblzma has
// found that they have the SHA-256 that they were packed with.
#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

/// The files of the unpacked stream, one after another: a line "MODE BYTES NAME", the mode in octal, and that many
/// bytes.
class Files {
 public:
  explicit Files(std::string folder) : folder_(std::move(folder)) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    if (file_ >= 0) close(file_);
  }

  /// The next part of the stream.
  void take(std::string_view data) {
    while (!data.empty()) {
      if (file_ < 0) {
        const size_t end = std::min(data.find('\n'), data.size());
        line_ += data.substr(0, end);
        if (end == data.size()) return;
        data.remove_prefix(end + 1);
        begin();
      } else {
        const ssize_t written = write(file_, data.data(), std::min<uint64_t>(data.size(), left_));
        if (written < 0) stop();
        left_ -= static_cast<uint64_t>(written);
        data.remove_prefix(static_cast<size_t>(written));
      }
      if (left_ == 0) finish();
    }
  }

  /// Whether the stream may end here.
  bool whole() const { return file_ < 0 && line_.empty(); }

 private:
  [[noreturn]] void stop() const { fail(path_ + ": " + std::strerror(errno)); }

  // The file that line_ says.
  void begin() {
    unsigned mode = 0;
    unsigned long long bytes = 0;
    int name = 0;
    if (std::sscanf(line_.c_str(), "%o %llu %n", &mode, &bytes, &name) != 2 || name == 0) fail("it holds no files");
    const std::string below = "/" + line_.substr(static_cast<size_t>(name));
    if ((below + "/").find("/../") != below.npos) fail("it holds a name that leads out of the folder: " + below);
    path_ = folder_ + below;
    line_.clear();
    for (size_t slash = path_.find('/', folder_.size() + 1); slash != path_.npos; slash = path_.find('/', slash + 1)) {
      if (mkdir(path_.substr(0, slash).c_str(), 0777) != 0 && errno != EEXIST) stop();
    }
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 || fchmod(file_, mode) != 0) stop();
    left_ = bytes;
  }

  void finish() {
    if (fsync(file_) != 0 || close(file_) != 0) stop();
    file_ = -1;
  }

  std::string folder_;
  std::string line_;  // as much of the next file's as has come
  std::string path_;
  int file_ = -1;
  uint64_t left_ = 0;  // bytes of the file that are to come
};

const char* text(lzma_ret result) {
  switch (result) {
    case LZMA_MEM_ERROR:
      return "out of memory";
    case LZMA_FORMAT_ERROR:
      return "it is no .xz file";
    case LZMA_DATA_ERROR:
      return "it is damaged";
    case LZMA_BUF_ERROR:
      return "it ends early";
    default:
      return "it was packed in a way that is not known here";
  }
}

void unpack(Files& files) {
  std::array<uint8_t, 1 << 16> in;
  std::array<uint8_t, 1 << 16> out;
  lzma_stream stream = LZMA_STREAM_INIT;
  // One without a checksum, or with one that is not known, is refused; so is anything behind its end.
  lzma_ret result =
      lzma_stream_decoder(&stream, UINT64_MAX, LZMA_TELL_NO_CHECK | LZMA_TELL_UNSUPPORTED_CHECK | LZMA_CONCATENATED);
  while (result == LZMA_OK) {
    if (stream.avail_in == 0) {
      stream.next_in = in.data();
      stream.avail_in = std::fread(in.data(), 1, in.size(), stdin);
      if (std::ferror(stdin) != 0) fail("it cannot be read");
    }
    stream.next_out = out.data();
    stream.avail_out = out.size();
    result = lzma_code(&stream, std::feof(stdin) != 0 ? LZMA_FINISH : LZMA_RUN);
    files.take({reinterpret_cast<const char*>(out.data()), out.size() - stream.avail_out});
  }
  lzma_end(&stream);
  if (result != LZMA_STREAM_END) fail(text(result));
  if (!files.whole()) fail("its last file ends early");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: unpack FOLDER <FILE.xz\n");
    return 2;
  }
  try {
    Files files(arguments[1]);
    unpack(files);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unpack: %s\n", error.what());
    return 1;
  }
  return 0;
}
