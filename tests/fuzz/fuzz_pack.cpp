// Packs: imported with the library's validation, printed and imported again, merged, compared, opened for their
// winners.
#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/cache/diff.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/statistics.h"
#include "kiln/cache/winners.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/templates/catalogue.h"

namespace kiln::fuzz {
namespace {

void open(const Catalogue& catalogue, std::string_view input, const cache::Pack& imported) {
  if (imported.devices.empty()) return;
  cache::Winners winners(imported.devices.front(), is_current(catalogue));
  winners.load_pack_text(input, "input");
  for (const cache::Record& record : imported.records) {
    for (const cache::Choice& choice : winners.all(record.request)) {
      check(choice.seconds > 0, "what can be chosen has a time");
    }
  }
}

std::string run(const Catalogue& catalogue, std::string_view input) {
  try {
    const cache::ParsedPack parsed = cache::parse_pack(input, pack_validator(catalogue));
    const std::string text = cache::print_pack(parsed.pack, "1");
    const cache::ParsedPack again = cache::parse_pack(text, pack_validator(catalogue));
    check(again.refused_lines == 0 && again.pack == parsed.pack, "what was imported comes back from its text");
    check(cache::merge(parsed.pack, parsed.pack) == parsed.pack, "merging a pack with itself changes nothing");
    check(cache::diff(parsed.pack, again.pack).changes.empty(), "a pack does not differ from itself");
    cache::statistics(parsed.pack, is_current(catalogue));
    open(catalogue, input, parsed.pack);
    return parsed.refused.empty() ? "whole" : parsed.refused.front().reason;
  } catch (const Error& error) {
    check(error.code() == ErrorCode::parse_error, error.what());
    return error.what();
  }
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  const kiln::Catalogue catalogue = kiln::make_catalogue(kiln::embedded_sources());
  std::vector<std::string> dictionary = {"\t",
                                         "\n",
                                         "\r\n",
                                         "record\t",
                                         "request\t",
                                         "device\t",
                                         "end\n",
                                         "#",
                                         "kiln-pack\t",
                                         "\\t",
                                         "\\x1f",
                                         "\\\\",
                                         "measured",
                                         "modelled",
                                         "predicted",
                                         "timed",
                                         "rejected_early",
                                         "refused",
                                         "real",
                                         "emulated",
                                         "-",
                                         "\xff",
                                         "\xe2\x80\xae",
                                         "deterministic",
                                         "varies",
                                         "9.0",
                                         "12.0",
                                         "1970-01-01T00:00:00.000Z",
                                         ",",
                                         "1e-5",
                                         " epilogue=user:0123456789abcdef0123456789abcdef",
                                         " epilogue.b=f32:64"};
  // Digests of algorithms as they are now: only with them is a record held against the space.
  for (const kiln::Algorithm& algorithm : catalogue.algorithms()) {
    dictionary.push_back(algorithm.name() + "\t" + catalogue.digest(algorithm.name()).value() + "\t");
  }
  return kiln::fuzz::fuzz_main(argc, argv,
                               {.name = "pack",
                                .run = [&](std::string_view input) { return kiln::fuzz::run(catalogue, input); },
                                .dictionary = std::move(dictionary)});
}
