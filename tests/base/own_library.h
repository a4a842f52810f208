#pragma once

#include <filesystem>
#include <vector>

/// kiln::own_folders(), as the library own_library.cpp finds them.
__attribute__((visibility("default"))) std::vector<std::filesystem::path> folders_of_the_library();
