#include "file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace kiln::cache {

bool is_network_file_system(long magic) {
  // From statfs(2) and the Linux headers; GPFS, Lustre, BeeGFS and PanFS from their own.
  constexpr std::array<unsigned, 16> shared = {
      0x00006969,  // NFS
      0x0000517B,  // SMB
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB2
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0xAAD7AAEA,  // PanFS
      0x00C36400,  // Ceph
      0x01161970,  // GFS2
      0x7461636F,  // OCFS2
      0x5346414F,  // AFS
      0x6B414653,  // kAFS
      0x01021997,  // 9P
      0x786F4256,  // VirtualBox shared folder
      0x65735546,  // FUSE
  };
  return std::find(shared.begin(), shared.end(), static_cast<unsigned>(magic)) != shared.end();
}

bool on_network_file_system(const std::string& path) {
  struct statfs info = {};
  if (statfs(path.c_str(), &info) == 0) return is_network_file_system(info.f_type);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return statfs(parent.empty() ? "." : parent.c_str(), &info) == 0 && is_network_file_system(info.f_type);
}

void create_parents(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
}

long long file_size(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<long long>(size);
}

}  // namespace kiln::cache
