// Standard input, an .xz file, unpacked to standard output: linked statically, for machines that have no xz.
// liblzma compares the data with the SHA-256 that they were packed with. Status 1 for anything but a whole and sound
// file.
#include <lzma.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace {

using Buffer = std::array<uint8_t, 1 << 16>;

const char* text(lzma_ret result) {
  switch (result) {
    case LZMA_MEM_ERROR:
      return "out of memory";
    case LZMA_FORMAT_ERROR:
      return "this is no .xz file";
    case LZMA_DATA_ERROR:
      return "the file is damaged";
    case LZMA_BUF_ERROR:
      return "the file ends early";
    default:
      return "the file was packed in a way that is not known here";
  }
}

int refuse(const char* reason) {
  std::fprintf(stderr, "unpack: %s\n", reason);
  return 1;
}

int unpack(lzma_stream& stream, Buffer& in, Buffer& out) {
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK) {
    if (stream.avail_in == 0) {
      stream.next_in = in.data();
      stream.avail_in = std::fread(in.data(), 1, in.size(), stdin);
      if (std::ferror(stdin) != 0) return refuse("the file cannot be read");
    }
    stream.next_out = out.data();
    stream.avail_out = out.size();
    result = lzma_code(&stream, std::feof(stdin) != 0 ? LZMA_FINISH : LZMA_RUN);
    const size_t bytes = out.size() - stream.avail_out;
    if (std::fwrite(out.data(), 1, bytes, stdout) != bytes) return refuse("what was unpacked cannot be written");
  }
  if (result != LZMA_STREAM_END) return refuse(text(result));
  return std::fflush(stdout) == 0 ? 0 : refuse("what was unpacked cannot be written");
}

}  // namespace

int main() {
  static Buffer in;
  static Buffer out;
  lzma_stream stream = LZMA_STREAM_INIT;
  // A file without a checksum, or with one that is not known, is refused; so is anything behind its end.
  const lzma_ret ready =
      lzma_stream_decoder(&stream, UINT64_MAX, LZMA_TELL_NO_CHECK | LZMA_TELL_UNSUPPORTED_CHECK | LZMA_CONCATENATED);
  const int status = ready == LZMA_OK ? unpack(stream, in, out) : refuse(text(ready));
  lzma_end(&stream);
  return status;
}
