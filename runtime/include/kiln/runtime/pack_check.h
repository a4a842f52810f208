// Whether what a pack says can be true: the cache reads packs as text, the catalogue knows what can be generated.
#pragma once

#include "kiln/cache/pack.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// True for the digest that `catalogue`, which must outlive the result, has of an algorithm.
cache::IsCurrent is_current(const Catalogue& catalogue);

/// For importing packs. A request must be canonical. Of a record, algorithm and configuration must be well-formed;
/// where the algorithm digest is the library's and the record has a time, the configuration must be a legal point for
/// the request on the record's device, and workspace, reproducibility and source digest those of the program that the
/// library makes of it. A record of an algorithm that has changed since cannot be judged so: it is let in, and is
/// stale.
///
/// `catalogue` must outlive the result. Not thread-safe: it remembers the last request.
cache::PackValidator pack_validator(const Catalogue& catalogue);

}  // namespace kiln
