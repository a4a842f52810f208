#include "file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "kiln/base/trusted_place.h"

namespace kiln::cache {

bool is_network_file_system(long magic) {
  // From statfs(2) and the Linux headers. Other kinds may be shared: only speed is lost if one is not.
  constexpr std::array<unsigned, 22> local = {
      0x0000EF53,  // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0x01021994,  // tmpfs
      0x858458F6,  // ramfs
      0x794C7630,  // overlayfs: its upper layer must be local
      0x2FC12FC1,  // ZFS
      0xF2F52010,  // F2FS
      0xCA451A4E,  // bcachefs
      0x00003434,  // NILFS2
      0x52654973,  // ReiserFS
      0x3153464A,  // JFS
      0x24051905,  // UBIFS
      0x00004D44,  // FAT
      0x2011BAB0,  // exFAT
      0x7366746E,  // NTFS
      0x0000482B,  // HFS+
      0x00011954,  // UFS
      0x15013346,  // UDF
      0x00009660,  // ISO 9660
      0x73717368,  // SquashFS
      0xE0F5E1E2,  // EROFS
  };
  return std::find(local.begin(), local.end(), static_cast<unsigned>(magic)) == local.end();
}

bool on_network_file_system(const std::string& path) {
  struct statfs info = {};
  if (statfs(path.c_str(), &info) == 0) return is_network_file_system(info.f_type);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return statfs(parent.empty() ? "." : parent.c_str(), &info) == 0 && is_network_file_system(info.f_type);
}

void create_parents(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  (void)make_folders(parent, 0755);
}

long long file_size(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<long long>(size);
}

}  // namespace kiln::cache
