// File system operations of the cache.
#pragma once

#include <string>

namespace kiln::cache {

/// True for file systems on which several machines may see one file, by statfs magic: WAL needs shared memory between
/// all readers, so it must not be used there. FUSE counts as one, since anything may be behind it.
bool is_network_file_system(long magic);

/// As above for the file system of `path`, or of its folder where the file does not exist. False if it cannot be told.
bool on_network_file_system(const std::string& path);

/// Creates the folders above `path` as far as they are missing, whatever the umask to be written by nobody else; what
/// cannot be created shows when the file is opened.
void create_parents(const std::string& path);

/// Size in bytes, or 0 for a file that does not exist or cannot be examined.
long long file_size(const std::string& path);

}  // namespace kiln::cache
