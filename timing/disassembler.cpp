#include "kiln/timing/disassembler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <vector>

#include "kiln/base/child.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/base/file_descriptor.h"
#include "kiln/base/variables.h"

namespace kiln::timing {
namespace {

namespace fs = std::filesystem;

constexpr const char* install_hint = "install the CUDA toolkit, or `pip install nvidia-cuda-nvdisasm`";

bool is_program(const fs::path& path) {
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

std::vector<fs::path> places() {
  std::vector<fs::path> found;
  const auto value = [](const char* name) { return std::string(variable(name) != nullptr ? variable(name) : ""); };
  const std::string path = value("PATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) found.push_back(fs::path(path.substr(begin, end - begin)) / "nvdisasm");
    begin = end + 1;
  }
  if (const std::string home = value("CUDA_HOME"); !home.empty()) found.push_back(fs::path(home) / "bin/nvdisasm");
  found.emplace_back("/usr/local/cuda/bin/nvdisasm");
  if (const std::string home = value("VIRTUAL_ENV"); !home.empty()) {
    std::error_code none;
    for (const auto& python : fs::directory_iterator(fs::path(home) / "lib", none)) {
      const fs::path wheels = python.path() / "site-packages/nvidia";
      found.push_back(wheels / "cu13/bin/nvdisasm");
      found.push_back(wheels / "cuda_nvdisasm/bin/nvdisasm");
    }
  }
  std::erase_if(found, [](const fs::path& place) { return place.is_relative(); });  // the working directory's
  return found;
}

std::string find_program(const DisassemblerOptions& options) {
  if (options.program) {
    if (is_program(*options.program)) return *options.program;
    throw Error(ErrorCode::missing_library, fmt::format("{} is no program", *options.program));
  }
  std::string tried;
  std::set<fs::path> seen;  // PATH may have a folder twice
  for (const fs::path& place : places()) {
    if (is_program(place)) return place;
    if (!seen.insert(place).second) continue;
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", place.parent_path().string());
  }
  throw Error(ErrorCode::missing_library, fmt::format("nvdisasm was not found in {}", tried), install_hint);
}

// A file that is gone with its object.
class Temporary {
 public:
  explicit Temporary(std::string_view content) {
    path_ = (fs::temp_directory_path() / "kiln-cubin-XXXXXX").string();
    const int file = ::mkstemp(path_.data());
    const bool whole =
        file >= 0 && ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    if (file >= 0) ::close(file);
    if (whole) return;
    if (file >= 0) ::unlink(path_.c_str());  // what is not made is not destroyed
    throw Error(ErrorCode::io_error, fmt::format("cannot write {}", path_));
  }
  ~Temporary() { ::unlink(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Reads a pipe until its other end is closed; nothing if that takes longer than `limit`.
std::optional<std::string> read_all(int file, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string output;
  char buffer[65536];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{file, POLLIN, 0};
    const int happened = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
    if (happened == 0) return std::nullopt;
    if (happened < 0 && errno == EINTR) continue;
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got == 0 || (got < 0 && errno != EINTR)) return output;
    output.append(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
}

// Runs a program and returns the text of both its outputs. Throws Error(compile_failed) if it ends otherwise than with
// 0, or not within `limit`.
std::string output_of(const std::string& program, std::vector<std::string> arguments, std::chrono::seconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorCode::io_error, "cannot make a pipe");
  const FileDescriptor out(ends[0]);
  FileDescriptor in(ends[1]);
  Child child({.path = program, .arguments = std::move(arguments), .output = ends[1], .error = ends[1]});
  in = FileDescriptor();  // the child's is the last: the pipe ends with it
  const std::optional<std::string> output = read_all(out.get(), limit);
  if (!output)
    throw Error(ErrorCode::compile_failed, fmt::format("{} did not end within {} s", program, limit.count()));
  const std::optional<ChildEnd> end = child.wait_for(limit);
  if (end && end->succeeded()) return *output;
  const std::string how = end ? end->text() : "it closed its output and did not end";
  throw Error(ErrorCode::compile_failed, fmt::format("{} failed ({}): {}", program, how, output->substr(0, 1000)));
}

}  // namespace

Disassembler::Disassembler(const DisassemblerOptions& options) : program_(find_program(options)) {
  try {
    version_ = output_of(program_, {"--version"}, std::chrono::seconds(5));
  } catch (const Error& error) {
    throw Error(ErrorCode::missing_library, error.message(), install_hint);
  }
  if (version_.find("disassembler") == std::string::npos) {
    throw Error(ErrorCode::missing_library, fmt::format("{} is no nvdisasm, by its --version", program_), install_hint);
  }
  if (options.store_folder.empty()) return;
  store::StoreOptions where;
  where.folder = options.store_folder;
  store_.emplace(where);
}

std::string Disassembler::text_of(std::string_view cubin) {
  const auto make = [&] {
    const Temporary file(cubin);
    return output_of(program_, {"-c", "-hex", file.path()}, std::chrono::seconds(60));
  };
  if (!store_) return make();
  std::string text;
  const std::string key = Digest().add("nvdisasm -c -hex").add(version_).add(cubin).hex();
  const auto take = [&](std::string_view stored) {
    text = stored;
    return true;
  };
  store_->obtain(key, take, [&] { return text = make(); });
  return text;
}

}  // namespace kiln::timing
