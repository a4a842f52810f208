// The parts of `kiln cache`: each file adds its own commands to it.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "database.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/generator/catalogue.h"

namespace kiln::cli {

void add_cache_transport(Command cache, int& exit_code);  ///< list, export, import, merge
void add_cache_review(Command cache, int& exit_code);     ///< diff, stats
void add_cache_upkeep(Command cache, int& exit_code);     ///< verify, prune, quarantine
void add_cache_fleet(Command cache, int& exit_code);      ///< compare, choose

/// Whether a file is a pack, by how it starts. Throws Error(io_error) for one that is called .pack and is neither a
/// pack nor a database, and as require_regular_file().
bool is_pack(const std::string& path);

/// All that a pack or a database holds. Refused lines of a pack are told on standard error. Throws Error.
cache::Pack read_contents(const std::string& path);

/// Which files of a folder are meant.
enum class FilesOf { databases, databases_and_packs };

/// `given`, with the files .db (and .pack) of a folder and of the folders in it in place of a folder, in the order of
/// their names; without the file `excluded`. Anything in a folder under such a name is listed, so that it is named
/// if it cannot be read. Throws Error(io_error) for a folder without any, and for a path that is no file.
std::vector<std::string> gather(const std::vector<std::string>& given, FilesOf kinds, const std::string& excluded = {});

/// A file that is named, or else the database of --db.
struct Source {
  std::string path;
  cache::Pack contents;
};
/// Throws Error, but not where nobody has tuned yet, as open_to_read().
Source read_source(const std::string& file, const std::string& database, const Environment& environment);

/// Parts of `contents`, which `path` holds, that nothing can be made of here, and how to change that: a line each.
std::vector<std::string> remarks_not_at_hand(const std::string& path, const cache::Pack& contents,
                                             const Catalogue& catalogue, const Expressions& expressions);

}  // namespace kiln::cli
