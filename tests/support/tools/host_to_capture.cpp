// Writes a recorded machine (tests/hosts/*.host) as a capture: host_to_capture MACHINE.host TARGET
// TARGET is a new directory or a .tar.zst. The examples were made with it.
#include <cstdio>

#include "capture/store.h"
#include "support/host_file.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: host_to_capture MACHINE.host TARGET\n");
    return 2;
  }
  const auto capture = ff::test::load_host(argv[1]);
  if (!capture) {
    std::fprintf(stderr, "%s\n", capture.error().to_string().c_str());
    return 3;
  }
  if (const auto stored = ff::capture::store(*capture, argv[2]); !stored) {
    std::fprintf(stderr, "%s\n", stored.error().to_string().c_str());
    return 3;
  }
  return 0;
}
