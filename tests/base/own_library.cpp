// A library in a folder of its own that has Kiln's code in it: libkiln.so in another program.
#include "own_library.h"

#include "kiln/base/own_folders.h"

std::vector<std::filesystem::path> folders_of_the_library() {
  return kiln::own_folders();
}
