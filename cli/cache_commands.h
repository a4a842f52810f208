// The parts of `kiln cache`: each file adds its own commands to it.
#pragma once

#include <string>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/generator/catalogue.h"

namespace CLI {
class App;
}

namespace kiln::cli {

void add_cache_transport(CLI::App& cache, int& exit_code);  ///< list, export, import, merge
void add_cache_review(CLI::App& cache, int& exit_code);     ///< diff, stats
void add_cache_upkeep(CLI::App& cache, int& exit_code);     ///< verify, prune, quarantine

/// Adds --db to a command.
void add_database_option(CLI::App& command, std::string& database);

/// The database that --db or the environment names. Throws Error(invalid_argument) if there is none.
std::string database_path(const std::string& option);

/// A command about a database is of no use without it: here trouble is an Error(io_error), not an announcement.
cache::Database open_or_fail(const std::string& path, cache::OpenMode mode);

/// Whether a file starts as packs do.
bool is_pack(const std::string& path);

/// All that a pack or a database holds. Of a pack, lines that are refused are
/// told on standard error. Throws Error.
cache::Pack read_contents(const std::string& path);

/// Tells what of `contents`, which `path` holds, nothing can be made of here, and how to change that.
void print_not_at_hand(const std::string& path, const cache::Pack& contents, const Catalogue& catalogue,
                       const Expressions& expressions);

}  // namespace kiln::cli
