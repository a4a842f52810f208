// libstdc++'s random_device asks for arc4random, which glibc has from 2.36 on. With this answer the programs start with
// glibc 2.34.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
