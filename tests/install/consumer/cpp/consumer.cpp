// Softmax of four equal values by an installed Kiln: 0.25 each. Before that, an error that crosses the boundary.
#include <array>
#include <cstdio>
#include <kiln/kiln.hpp>
#include <span>

namespace {

bool catches_what_the_library_throws() {
  try {
    (void)kiln::Request::parse("no_such_operation");
    return false;
  } catch (const kiln::Error&) {
    return true;
  }
}

int run() {
  if (!catches_what_the_library_throws()) return 2;
  kiln::Context context;
  std::array<float, 4> values{1, 1, 1, 1};
  kiln::DeviceMemory x(context, sizeof values), y(context, sizeof values);
  x.upload(std::as_bytes(std::span(values)));
  kiln::softmax_forward(context, kiln::Tensor(x.data(), kiln::f32, {1, 4}, kiln::nc),
                        kiln::Tensor(y.data(), kiln::f32, {1, 4}, kiln::nc));
  y.download(std::as_writable_bytes(std::span(values)));
  std::printf("kiln %s: %g %g %g %g\n", kiln::version().data(), values[0], values[1], values[2], values[3]);
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
