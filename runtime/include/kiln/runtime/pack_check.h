// Whether what a pack says can be true: the cache reads packs as text, the catalogue knows what can be generated.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/cache/pack.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// True for the digest that `catalogue`, which must outlive the result, has of an algorithm.
cache::IsCurrent is_current(const Catalogue& catalogue);

/// False only for what `catalogue`, which must outlive the result, has with another digest. An algorithm that is not in
/// it may be a user template that is not named here, so its records are good elsewhere.
cache::IsCurrent is_not_replaced(const Catalogue& catalogue);

/// For importing packs. A request must be canonical. In a record, algorithm and configuration must be well-formed;
/// where the algorithm digest is the library's and the record has a time, the configuration must be a legal point for
/// the request on the record's device, workspace, reproducibility and source digest those of the program that the
/// library makes, and the time one that the device could reach. A record of an algorithm that has changed since cannot
/// be judged so: it is let in, and is stale.
///
/// Packs hold no user code. A request whose code's text is in `expressions` is checked in full; without the text no
/// source can be made to compare digests, and all the rest is checked. Such records are let in: whoever has the text
/// can use them.
///
/// `catalogue` must outlive the result. Not thread-safe: it remembers the last request.
cache::PackValidator pack_validator(const Catalogue& catalogue, Expressions expressions = {});

/// The digest of the user code in a request's `line` that `expressions` holds no text of; nothing if there is none, or
/// if the line is no request.
std::optional<std::string> unknown_user_code(std::string_view line, const Expressions& expressions);

/// Records of a pack or a database that nothing can be made of here, though they may be good elsewhere.
struct NotAtHand {
  std::map<std::string, size_t> user_code;   ///< By digest: of user code whose text is not known.
  std::map<std::string, size_t> algorithms;  ///< By name: of algorithms that are not in the catalogue.
};

/// `expressions`: texts that are known.
NotAtHand not_at_hand(const cache::Pack& contents, const Catalogue& catalogue, const Expressions& expressions);

}  // namespace kiln
