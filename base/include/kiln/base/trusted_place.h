// Places of the file system that no other user decides about: what Kiln finds there, it wrote itself.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

namespace kiln {

/// Why another user decides about a file or folder: "belongs to user 1000", "can be written by its group". Nothing if
/// it belongs to the effective user or to root, and nobody else can write it.
///
/// A group with the number of the owner counts as the owner: systems that give every user a group of that number let it
/// write what the user makes.
std::optional<std::string> why_not_own(const struct stat& info);

enum class PlaceKind { file, folder };

/// Why another user decides about what is found at `path`, with the file or folder that shows it: "/tmp can be written
/// by others". Nothing if nobody does, and if it cannot be examined, because then it cannot be opened either.
///
/// The file or folder has to be one's own, as why_not_own() has it, and so has the folder of a file. Folders above may
/// be writable by others where the sticky bit keeps entries with their owners, as in /tmp. Symbolic links have to
/// belong to root or the effective user, and so on where they lead. For a path that does not exist yet, the part that
/// exists counts.
///
/// In a user namespace (a rootless container) folders above may belong to a user without a number there: root of the
/// machine is one.
std::optional<std::string> why_not_trusted(const std::filesystem::path& path, PlaceKind kind);

/// Makes `folder` and those above as far as they are missing, with the rights `mode` less the umask. Returns what went
/// wrong, in the system's words.
std::optional<std::string> make_folders(const std::filesystem::path& folder, mode_t mode);

}  // namespace kiln
