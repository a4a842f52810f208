// Tiles whose results are compared between chips, and their digest.
#pragma once

#include <string>
#include <vector>

#include "product_forms.h"

namespace kiln::testing_support::mma {

/// Tiles under the word that begins the line of their results' digest.
struct TileSet {
  std::string word;
  std::vector<Tile> tiles;
};

/// The same in every run, since digests are kept. "bits": numbers as Draw has them. "probes", for floating-point
/// numbers: those that tell arithmetics apart, by what is aligned to what, where bits are dropped, and how the ends of
/// the range are reached.
std::vector<TileSet> compared_tiles(const Form& form);

/// FNV-1a, 32 bits.
uint32_t digest_of(const std::vector<uint32_t>& words);

}  // namespace kiln::testing_support::mma
