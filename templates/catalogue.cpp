#include "kiln/templates/catalogue.h"

#include <utility>

// The one list of algorithms. Each is declared in a descriptor of that name: pool_simple in pool/pool_simple.cpp.
#define KILN_ALGORITHMS(algorithm) algorithm(conv_simple) algorithm(pool_simple)

namespace kiln {

#define KILN_DECLARE(name) Algorithm name();
KILN_ALGORITHMS(KILN_DECLARE)
#undef KILN_DECLARE

Catalogue make_catalogue(SourceLibrary library) {
#define KILN_CALL(name) name(),
  return Catalogue(std::move(library), {KILN_ALGORITHMS(KILN_CALL)});
#undef KILN_CALL
}

}  // namespace kiln
