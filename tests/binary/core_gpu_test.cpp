// No GPU core file exists here: the ring, its counters, the list of code objects and the note are laid out as ROCr, the HSA
// specification and glibc's r_debug describe them; the code object is a real one.
#include <csignal>
#include <cstring>

#include "binary/core.h"
#include "binary/core_enable.h"
#include "elf/elf.h"
#include "support.h"

namespace ff::binary {
namespace {

class Image {
 public:
  template <class T>
  static void put(std::string& bytes, std::size_t at, T value) {
    if (bytes.size() < at + sizeof(value)) bytes.resize(at + sizeof(value), '\0');
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
  void load(std::uint64_t address, std::string bytes) { loads_.emplace_back(address, std::move(bytes)); }

  [[nodiscard]] std::string file(const std::string& note) const {
    std::string out(
        "\x7f"
        "ELF\2\1\1\x40",
        8);
    put(out, 16, std::uint16_t{4});
    put(out, 18, std::uint16_t{224});
    put(out, 32, std::uint64_t{64});
    put(out, 54, std::uint16_t{56});
    put(out, 56, static_cast<std::uint16_t>(loads_.size() + 1));
    out.resize(64 + 56 * (loads_.size() + 1), '\0');
    const auto header = [&](std::size_t number, std::uint32_t type, std::uint64_t address, const std::string& bytes) {
      const std::size_t at = 64 + 56 * number;
      put(out, at, type);
      put(out, at + 8, std::uint64_t{out.size()});
      put(out, at + 16, address);
      put(out, at + 32, std::uint64_t{bytes.size()});
      put(out, at + 40, std::uint64_t{bytes.size()});
      out += bytes;
    };
    header(0, 4, 0, note);
    for (std::size_t i = 0; i < loads_.size(); ++i) header(i + 1, 1, loads_[i].first, loads_[i].second);
    return out;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::string>> loads_;
};

constexpr std::uint64_t ring = 0x7f0000000000, counters = 0x7f0000010000, debug = 0x7f0000020000, code_at = 0x7f0000030000, base = 0x7f0001000000;

std::string note(std::uint32_t ring_size) {
  std::string content;
  Image::put(content, 0, std::uint64_t{1});
  Image::put(content, 8, std::uint32_t{1});
  Image::put(content, 12, std::uint32_t{18});
  Image::put(content, 16, std::uint64_t{16});
  Image::put(content, 24, std::uint32_t{0});  // agents
  Image::put(content, 28, std::uint32_t{128});
  Image::put(content, 32, std::uint32_t{1});  // queues
  Image::put(content, 36, std::uint32_t{64});
  Image::put(content, 40, debug);
  const std::size_t queue = 56;
  Image::put(content, queue + 8, ring);
  Image::put(content, queue + 16, counters);
  Image::put(content, queue + 24, counters + 8);
  Image::put(content, queue + 40, std::uint32_t{3});
  Image::put(content, queue + 48, ring_size);
  Image::put(content, queue + 52, std::uint32_t{2});  // AQL
  Image::put(content, queue + 60, std::uint32_t{0});
  std::string out;
  Image::put(out, 0, std::uint32_t{7});
  Image::put(out, 4, static_cast<std::uint32_t>(content.size()));
  Image::put(out, 8, std::uint32_t{33});
  return out + std::string("AMDGPU\0\0", 8) + content;
}

/// 64 slots; packets 65 (a dispatch of tile) and 66 (a barrier) are not finished with.
Image memory(std::uint64_t read, std::uint64_t written) {
  const std::string code = read_file(fixture_path("gfx1100.co"));
  std::uint64_t descriptor = 0;
  const auto object = elf::File::parse(code);
  for (const auto& symbol : object->symbols(true))
    if (symbol.name == "tile.kd") descriptor = symbol.value;
  EXPECT_NE(descriptor, 0U);
  std::string slots(4096, '\0');
  const std::size_t dispatch = 64, barrier = 128;  // slots 1 and 2
  Image::put(slots, dispatch, std::uint16_t{2});
  Image::put(slots, dispatch + 4, std::uint16_t{256});
  Image::put(slots, dispatch + 6, std::uint16_t{1});
  Image::put(slots, dispatch + 8, std::uint16_t{1});
  Image::put(slots, dispatch + 12, std::uint32_t{65536});
  Image::put(slots, dispatch + 16, std::uint32_t{1});
  Image::put(slots, dispatch + 20, std::uint32_t{1});
  Image::put(slots, dispatch + 28, std::uint32_t{4096});
  Image::put(slots, dispatch + 32, base + descriptor);
  Image::put(slots, barrier, std::uint16_t{3});
  std::string numbers, list;
  Image::put(numbers, 0, written);
  Image::put(numbers, 8, read);
  Image::put(list, 8, debug + 0x100);
  Image::put(list, 0x100, base);
  Image::put(list, 0x108, debug + 0x200);
  Image::put(list, 0x118, std::uint64_t{0});
  const std::string uri = "memory://4242#offset=0x7f0000030000&size=" + std::to_string(code.size());
  list.resize(0x200, '\0');
  list += uri + '\0';
  Image image;
  image.load(ring, slots);
  image.load(counters, numbers);
  image.load(debug, list);
  image.load(code_at, code);
  return image;
}

TEST(GpuPackets, AreThoseBetweenTheCountersWithTheirKernels) {
  const std::string bytes = memory(65, 67).file(note(4096));
  auto core = read_core(bytes);
  ASSERT_TRUE(core && core->gpu) << "the note";
  add_gpu_packets(*core, {bytes});
  const auto& queue = core->gpu->queues.at(0);
  EXPECT_EQ(queue.packets_missing, "");
  ASSERT_EQ(queue.packets.size(), 2U);
  EXPECT_EQ(queue.packets[0].index, 65U);
  EXPECT_EQ(queue.packets[0].type, "kernel dispatch");
  EXPECT_EQ(queue.packets[0].kernel, "tile");
  EXPECT_EQ(queue.packets[0].grid[0], 65536U);
  EXPECT_EQ(queue.packets[0].workgroup[0], 256U);
  EXPECT_EQ(queue.packets[0].lds_bytes, 4096U);
  EXPECT_EQ(queue.packets[1].type, "barrier (and)");
}

TEST(GpuPackets, LieInTheOtherHalfOfTheDump) {
  const std::string gpu = Image().file(note(4096)), host = memory(65, 66).file(note(4096));
  auto core = read_core(gpu);
  ASSERT_TRUE(core && core->gpu);
  add_gpu_packets(*core, {gpu});
  EXPECT_NE(core->gpu->queues[0].packets_missing.find("--other"), std::string::npos);
  core = read_core(gpu);
  add_gpu_packets(*core, {gpu, host});
  ASSERT_EQ(core->gpu->queues[0].packets.size(), 1U);
  EXPECT_EQ(core->gpu->queues[0].packets[0].kernel, "tile");
}

TEST(GpuPackets, CountersThatMakeNoSenseAreSaid) {
  for (const auto& [read, written] : {std::pair<std::uint64_t, std::uint64_t>{67, 65}, {0, 1000}, {0, ~std::uint64_t{0}}}) {
    const std::string bytes = memory(read, written).file(note(4096));
    auto core = read_core(bytes);
    add_gpu_packets(*core, {bytes});
    EXPECT_TRUE(core->gpu->queues[0].packets.empty());
    EXPECT_NE(core->gpu->queues[0].packets_missing.find("make no sense"), std::string::npos);
  }
  const std::string idle = memory(67, 67).file(note(4096));
  auto core = read_core(idle);
  add_gpu_packets(*core, {idle});
  EXPECT_TRUE(core->gpu->queues[0].packets.empty() && core->gpu->queues[0].packets_missing.empty()) << "an empty queue";
}

TEST(GpuPackets, OfAFileThatWasCutShortNeverLeaveIt) {
  const std::string whole = memory(65, 67).file(note(4096));
  for (std::size_t size = 0; size < whole.size(); size += 61) {
    const std::string part = whole.substr(0, size);
    if (auto core = read_core(part)) add_gpu_packets(*core, {part});
  }
}

TEST(Rocgdb, CommandsHoldNoNameThatCouldBeACommand) {
  Core core;
  core.gpu.emplace();
  const auto text = rocgdb_commands(core, "/tmp/core.17", "/opt/app");
  EXPECT_NE(text.find("\nfile /opt/app\ncore-file /tmp/core.17\n"), std::string::npos) << text;
  EXPECT_NE(text.find("info dispatches"), std::string::npos);
  const auto hostile = rocgdb_commands(core, "/tmp/a\nshell reboot", "/opt/my app");
  EXPECT_EQ(hostile.find("reboot"), std::string::npos) << hostile;
  EXPECT_EQ(hostile.find("my app"), std::string::npos);
  EXPECT_NE(hostile.find("--core="), std::string::npos);
  core.gpu.reset();
  EXPECT_EQ(rocgdb_commands(core, "x", "").find("info dispatches"), std::string::npos);
}

CoreSettings good_settings() {
  CoreSettings out;
  out.soft_limit = out.hard_limit = ~std::uint64_t{0};
  out.pattern = "core.%p";
  out.directory = "/work";
  out.free_bytes = std::uint64_t{100} << 30;
  return out;
}

const CoreSetting& row(const CoreReadiness& readiness, std::string_view id) {
  static const CoreSetting none;
  for (const auto& setting : readiness.rows)
    if (setting.id == id) return setting;
  ADD_FAILURE() << "no " << id;
  return none;
}

TEST(CoreEnable, AWellSetMachineIsReadyAndSaysWhere) {
  const auto ready = judge_core_settings(good_settings());
  EXPECT_TRUE(ready.ready);
  EXPECT_EQ(ready.where, "/work/core.%p");
  for (const auto& setting : ready.rows) EXPECT_TRUE(setting.ok) << setting.id << " " << setting.what;
}

TEST(CoreEnable, EachObstacleIsNamedWithItsRemedy) {
  auto settings = good_settings();
  settings.soft_limit = 0;
  auto judged = judge_core_settings(settings);
  EXPECT_FALSE(judged.ready);
  EXPECT_TRUE(row(judged, "limit").command.starts_with("ulimit -c unlimited"));
  settings.hard_limit = 0;
  EXPECT_NE(row(judge_core_settings(settings), "limit").command.find("limits.d"), std::string::npos);
  settings.container = true;
  EXPECT_EQ(row(judge_core_settings(settings), "limit").command, "start the container with --ulimit core=-1");
  settings = good_settings();
  settings.pattern = "core";
  EXPECT_TRUE(judge_core_settings(settings).ready);
  EXPECT_FALSE(row(judge_core_settings(settings), "pattern").ok) << "the last crash wins";
  settings.pattern = "|/usr/lib/systemd/systemd-coredump %P";
  settings.coredumpctl = true;
  settings.soft_limit = 0;
  judged = judge_core_settings(settings);
  EXPECT_TRUE(judged.ready) << "a pipe gets the dump at any limit";
  EXPECT_NE(judged.where.find("coredumpctl"), std::string::npos);
  settings.container = true;
  EXPECT_FALSE(judge_core_settings(settings).ready) << "the dump goes to the host";
  settings = good_settings();
  settings.directory_writable = false;
  EXPECT_FALSE(judge_core_settings(settings).ready);
  settings = good_settings();
  settings.gpu_disabled = true;
  EXPECT_FALSE(row(judge_core_settings(settings), "gpu").ok);
}

TEST(CoreJudge, ASignalThatAProcessSentIsNoFaultOfAnInstruction) {
  Core core;
  core.signal = SIGSEGV;
  core.code_known = true;
  core.code = 0;  // SI_USER
  core.sender = 4242;
  const auto sent = judge(core, elf::Bytes{});
  EXPECT_NE(sent.what.find("sent by process 4242"), std::string::npos) << sent.what;
  EXPECT_EQ(sent.what.find("null pointer"), std::string::npos) << sent.what;
  core.code = 1;  // SEGV_MAPERR
  EXPECT_NE(judge(core, elf::Bytes{}).what.find("null pointer"), std::string::npos);
}

}  // namespace
}  // namespace ff::binary
