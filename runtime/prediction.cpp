#include "kiln/prediction.h"

#include "common_cards.h"
#include "kiln/base/error.h"
#include "kiln/templates/catalogue.h"

namespace kiln {

double predicted_seconds(const Request& request) {
  static const Catalogue catalogue = make_catalogue(embedded_sources());
  static const Target target{Arch::of(8, 0), 12, 0};
  static const DeviceFigures a100 = common_figures(target.arch);
  Variants variants = catalogue.on(request, target);
  return variants.estimate(variants.heuristic(a100), a100).seconds;
}

double predicted_seconds(const Request& request, double unserved) {
  try {
    return predicted_seconds(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return unserved;
  }
}

}  // namespace kiln
