// Trouble with the folder of a FileStore, found before there is an entry.
#pragma once

#include <optional>
#include <string>

#include "kiln/store/file_store.h"

namespace kiln::store {

/// Makes the folder, and says why no entry can be kept in it, as a FileStore would announce it; nothing if they can.
/// For a process whose others use the store silently.
std::optional<std::string> trouble_with(const StoreOptions& options);

}  // namespace kiln::store
