// An application that ships its tuning results: a pack beside the program, opened by the Context. No tuning happens on
// the user's machine, and no database is written there.
#include <kiln/base/error.h>
#include <kiln/context.h>

#include <cstdio>

namespace {

// The layers of this application. Preparing them at start-up means that no later call compiles.
const char* const layers[] = {"conv_forward x=f32:1x3x224x224 w=f32:64x3x3x3 pad=1 epilogue=bias+relu"};

int run(const char* pack) {
  kiln::ContextOptions options;
  options.packs = {pack};
  options.cache = "off";  // only what was shipped
  kiln::Context context(options);
  std::printf("%s\n", context.device_description().c_str());

  std::vector<kiln::Request> requests;
  for (const char* layer : layers) requests.push_back(kiln::Request::parse(layer));
  context.prepare(requests);
  bool all_from_pack = true;
  for (const kiln::Request& request : requests) {
    const kiln::Plan plan = context.plan(request);
    std::printf("%s\n  %s: %s\n", request.key().c_str(), plan.variant().c_str(), plan.source().c_str());
    all_from_pack = all_from_pack && plan.source().find("pack") != std::string::npos;
  }
  std::printf(all_from_pack ? "every layer uses what the pack names\n"
                            : "some layers are not in the pack for this device: they use the best estimate\n");
  return all_from_pack ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.pack   (made by `kiln cache export --winners`)\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
