// Replays a corpus through a fuzz target without libFuzzer: each file whole, and, when it is small, each of its
// truncations. The program fails by crashing or by hanging past the test's time limit.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  constexpr std::size_t truncate_up_to_bytes = 4096;
  std::size_t inputs = 0;
  const auto run = [&](const std::vector<std::uint8_t>& bytes, std::size_t size) {
    // An exact-size copy, so that a sanitizer sees reads past the end.
    const auto copy = std::make_unique<std::uint8_t[]>(size == 0 ? 1 : size);
    std::copy_n(bytes.begin(), size, copy.get());
    LLVMFuzzerTestOneInput(copy.get(), size);
    ++inputs;
  };
  run({}, 0);
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::exists(argv[i])) {
      std::fprintf(stderr, "no corpus at %s\n", argv[i]);
      return 1;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
      run(bytes, bytes.size());
      if (bytes.size() <= truncate_up_to_bytes)
        for (std::size_t size = 0; size < bytes.size(); ++size) run(bytes, size);
    }
  }
  std::printf("%zu inputs replayed\n", inputs);
  return 0;
}
