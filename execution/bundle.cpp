#include "kiln/execution/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bundle_format.h"
#include "json_fields.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/base/file_start.h"

namespace kiln::execution {
namespace {

using nlohmann::json;
namespace format = bundle_format;

// The decimal number of 20 digits at `at`; nothing if there is none.
std::optional<uint64_t> number_at(std::string_view header, size_t at) {
  constexpr size_t digits = 20;
  uint64_t number = 0;
  const char* const begin = header.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + digits, number);
  if (error != std::errc() || end != begin + digits) return std::nullopt;
  return number;
}

BundledVariant variant_from(const json& value) {
  BundledVariant variant;
  value.at("request").get_to(variant.request);
  value.at("arch").get_to(variant.arch);
  value.at("emulated").get_to(variant.emulated);
  value.at("algorithm").get_to(variant.algorithm);
  value.at("config").get_to(variant.config);
  value.at("seconds").get_to(variant.seconds);
  value.at("device").get_to(variant.device);
  variant.sms = integer<int>(value.at("sms"));
  variant.workspace_bytes = integer<int64_t>(value.at("workspace"));
  value.at("deterministic").get_to(variant.deterministic);
  value.at("program").get_to(variant.program);
  if (value.contains("sources")) value.at("sources").get_to(variant.sources);
  if (value.contains("open_line")) value.at("open_line").get_to(variant.open_line);
  return variant;
}

}  // namespace

Bundle::Bundle(std::string path, int file) : path_(std::move(path)), file_(file) {}

Bundle::~Bundle() {
  ::close(file_);
}

std::shared_ptr<const Bundle> Bundle::open(const std::string& path) {
  if (is_database(path)) {
    throw Error(ErrorCode::parse_error, fmt::format("{} is not a usable bundle: it is a database", path),
                "name a file that `kiln bundle` wrote");
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    throw Error(ErrorCode::io_error, fmt::format("the bundle {} cannot be read: {}", path, std::strerror(errno)));
  }
  std::shared_ptr<Bundle> bundle(new Bundle(path, file));
  bundle->read_index();
  return bundle;
}

void Bundle::refuse(const std::string& what) const {
  throw Error(ErrorCode::parse_error, fmt::format("{} is not a usable bundle: {}", path_, what),
              "make it again with `kiln bundle`");
}

std::string Bundle::read(uint64_t offset, uint64_t bytes) const {
  std::string text(bytes, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::pread(file_, text.data() + done, text.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorCode::io_error, fmt::format("the bundle {} cannot be read: {}", path_, std::strerror(errno)));
    }
    if (got == 0) refuse("it is cut off");
    done += static_cast<size_t>(got);
  }
  return text;
}

void Bundle::read_index() {
  struct stat info = {};
  if (::fstat(file_, &info) != 0 || !S_ISREG(info.st_mode)) refuse("it is not a file");
  file_bytes_ = static_cast<uint64_t>(info.st_size);
  const std::string header = read(0, std::min(file_bytes_, format::header_bytes));
  const std::string expected = fmt::format("{}{} ", format::magic, format::version);
  if (!header.starts_with(format::magic)) refuse("it does not start as one");
  if (!header.starts_with(expected))
    refuse(fmt::format("its format is not {}, which this Kiln reads", format::version));
  if (header.size() < format::header_bytes) refuse("it is cut off");
  const std::optional<uint64_t> offset = number_at(header, expected.size());
  const std::optional<uint64_t> bytes = number_at(header, expected.size() + 21);
  if (!offset || !bytes || *offset > file_bytes_ || *bytes != file_bytes_ - *offset) refuse("its length is not right");
  if (*bytes > format::max_index_bytes) refuse("its index is too large");
  const std::string text = read(*offset, *bytes);
  if (header != format::print_header({*offset, *bytes, digest_of(text)})) refuse("the checksum of its index is wrong");
  try {
    const json index = json::parse(text);
    index.at("kiln").get_to(kiln_version_);
    index.at("nvrtc").get_to(nvrtc_version_);
    for (const json& value : index.at("variants")) {
      const Place place{integer<uint64_t>(value.at("offset")), integer<uint64_t>(value.at("bytes"))};
      const bool inside = place.offset >= format::header_bytes && place.offset <= *offset &&
                          place.bytes <= *offset - place.offset && place.offset % format::alignment == 0;
      if (!inside) refuse("a program stands outside of it");
      variants_.push_back(variant_from(value));
      places_.push_back(place);
    }
  } catch (const json::exception& failure) {
    refuse(failure.what());
  }
}

CompiledProgram Bundle::load(size_t i) const {
  const BundledVariant& variant = variants_.at(i);
  CompiledProgram compiled = [&] {
    try {
      return deserialise(read(places_[i].offset, places_[i].bytes));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::parse_error) throw;
      refuse(fmt::format("the kernels of {}: {}", variant.request, error.message()));
    }
  }();
  const Program& program = compiled.program;
  if (program.workspace_bytes != variant.workspace_bytes || program.deterministic != variant.deterministic) {
    refuse(fmt::format("the kernels of {} are not those of its index", variant.request));
  }
  for (const KernelImage& image : compiled.images) {
    if ((variant.emulated ? image.ptx : image.cubin).empty()) {
      refuse(fmt::format("kernels of {} are missing", variant.request));
    }
  }
  return compiled;
}

}  // namespace kiln::execution
