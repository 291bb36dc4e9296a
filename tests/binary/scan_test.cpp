#include "binary/scan.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "support.h"

namespace ff::binary {
namespace {

using Strings = std::vector<std::string>;

Strings targets(const ComponentReport& report) {
  Strings out;
  for (const auto& target : report.targets) out.push_back(target.to_string());
  return out;
}
const ComponentReport* part(const std::vector<ComponentReport>& parts, std::string_view id) {
  const auto found = std::ranges::find_if(parts, [&](const ComponentReport& report) { return report.component.id == id; });
  return found == parts.end() ? nullptr : &*found;
}
DeviceAnswer ask(const std::vector<ComponentReport>& parts, std::string_view device) { return answer_for(*elf::parse_target_id(device), parts); }

/// A wheel with the members given; deflated unless `stored`.
std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool stored) {
  std::string out, directory;
  const auto u16 = [](std::string& to, std::uint64_t v) { to.append(reinterpret_cast<const char*>(&v), 2); };
  const auto u32 = [](std::string& to, std::uint64_t v) { to.append(reinterpret_cast<const char*>(&v), 4); };
  for (const auto& [name, content] : members) {
    std::string body = content;
    if (!stored) {
      z_stream stream{};
      EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
      body.resize(deflateBound(&stream, content.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = reinterpret_cast<Bytef*>(body.data());
      stream.avail_out = static_cast<uInt>(body.size());
      EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
      body.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const std::uint64_t offset = out.size();
    std::string common;
    u16(common, 20);
    u16(common, 0);
    u16(common, stored ? 0 : 8);
    u32(common, 0);
    u32(common, 0);
    u32(common, body.size());
    u32(common, content.size());
    u16(common, name.size());
    u16(common, 0);
    out += "PK\3\4" + common + name + body;
    directory += "PK\1\2";
    u16(directory, 20);
    directory += common;
    u16(directory, 0);
    u16(directory, 0);
    u16(directory, 0);
    u32(directory, 0);
    u32(directory, offset);
    directory += name;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  u16(end, members.size());
  u16(end, members.size());
  u32(end, directory.size());
  u32(end, out.size());
  u16(end, 0);
  return out + directory + end;
}

using ScanTest = WithDirectory;

TEST_F(ScanTest, FindsTheComponentsOfAPyTorchTree) {
  copy("library.so", "torch/lib/libtorch_hip.so");
  write("torch/lib/libtorch_cpu.so", read_file("/bin/true"));
  for (const auto* name : {"TensileLibrary_lazy_gfx90a.dat", "TensileLibrary_lazy_gfx1100.dat", "TensileLibrary_Type_HH_fallback_gfx1030.dat"})
    write(std::string("torch/lib/rocblas/library/") + name, "index");
  copy("gfx1100.co", "torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco");
  write("torch/lib/hipblaslt/library/TensileLibrary_lazy_gfx90a.dat", "index");
  write("torch/share/miopen/db/gfx90a68.HIP.fdb.txt", "1-3-3=miopenConvolutionFwdAlgoGEMM:GemmFwdRest,1,2,3\n");
  write("torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/x.aks2", "image");
  write("torch/__init__.py", "print()");
  const Scan found = scan({.inputs = {directory}});
  EXPECT_TRUE(found.errors.empty());
  const auto parts = components(found);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0].component.id, "torch") << "needed first";
  EXPECT_EQ(targets(parts[0]), (Strings{"gfx90a:xnack-", "gfx1100"}));
  EXPECT_EQ(targets(*part(parts, "rocblas")), (Strings{"gfx90a", "gfx1100"})) << "gfx1030 has no index, so it is never loaded";
  EXPECT_EQ(part(parts, "rocblas")->files, 4U);
  EXPECT_EQ(targets(*part(parts, "miopen-db")), Strings{"gfx90a"});
  EXPECT_TRUE(std::ranges::count(targets(*part(parts, "aotriton")), "gfx1100") == 1);

  const auto native = ask(parts, "gfx90a");
  EXPECT_EQ(native.cover, elf::Cover::native);
  EXPECT_EQ(native.first_to_fail, nullptr);
  const auto without_blaslt = ask(parts, "gfx1100");
  EXPECT_EQ(without_blaslt.first_to_fail, nullptr) << "hipBLASLt falls back to rocBLAS, MIOpen compiles";
  const auto absent = ask(parts, "gfx1201");
  EXPECT_EQ(absent.cover, elf::Cover::none);
  ASSERT_NE(absent.first_to_fail, nullptr);
  EXPECT_EQ(absent.first_to_fail->component->component.id, "torch");
}

TEST_F(ScanTest, NamesTheLibraryThatFailsFirstWhenOnlyThatOneLacksTheTarget) {
  copy("library.so", "torch/lib/libtorch_hip.so");
  write("torch/lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat", "index");
  const auto parts = components(scan({.inputs = {directory}}));
  const auto answer = ask(parts, "gfx1100");
  ASSERT_NE(answer.first_to_fail, nullptr);
  EXPECT_EQ(answer.first_to_fail->component->component.id, "rocblas");
  EXPECT_EQ(answer.cover, elf::Cover::none);
}

TEST_F(ScanTest, AVersionMayStandInsideALibrarysDirectory) {
  // Debian's librocblas4 and libhipblaslt1.
  for (const auto* name : {"TensileLibrary_lazy_gfx90a.dat", "TensileLibrary_lazy_gfx1100.dat"})
    write(std::string("usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/") + name, "index");
  write("usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/TensileLibrary_Type_HH_fallback_gfx90a-xnack+.hsaco", "code");
  write("usr/lib/x86_64-linux-gnu/hipblaslt/library/TensileLibrary_lazy_gfx90a.dat", "index");
  write("usr/lib/mine/4.4.1/library/TensileLibrary_lazy_gfx90a.dat", "another's");
  const auto parts = components(scan({.inputs = {directory}}));
  ASSERT_NE(part(parts, "rocblas"), nullptr);
  EXPECT_EQ(part(parts, "rocblas")->component.root, directory + "/usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library");
  EXPECT_EQ(targets(*part(parts, "rocblas")), (Strings{"gfx90a", "gfx1100"}));
  EXPECT_EQ(targets(*part(parts, "hipblaslt")), Strings{"gfx90a"});
  EXPECT_EQ(parts.size(), 2U);
}

TEST_F(ScanTest, ReadsAWheelInPlaceStoredOrDeflated) {
  const std::string library = read_file(fixture_path("library.so"));
  for (const bool stored : {true, false}) {
    const auto wheel = write(stored ? "a.whl" : "b.whl", zip({{"torch/lib/libtorch_hip.so", library},
                                                              {"torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "index"},
                                                              {"torch/__init__.py", "print()"}},
                                                             stored));
    const Scan found = scan({.inputs = {wheel}});
    EXPECT_TRUE(found.errors.empty());
    ASSERT_EQ(found.files.size(), 2U);
    EXPECT_EQ(found.files[0].path, wheel + "!torch/lib/libtorch_hip.so");
    EXPECT_EQ(found.files[0].targets.size(), 2U);
    EXPECT_EQ(found.files_looked_at, 2U) << "Python sources are not looked at";
  }
}

TEST_F(ScanTest, ADamagedWheelIsAnErrorAtEveryTruncation) {
  const std::string whole =
      zip({{"a.so", read_file(fixture_path("gfx1100.co"))}, {"rocblas/library/TensileLibrary_lazy_gfx1100.dat", "index"}}, false);
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const Scan found = scan({.inputs = {write("cut.whl", whole.substr(0, size))}, .threads = 1});
    EXPECT_FALSE(found.errors.empty()) << size;
  }
  std::string lies = whole;
  const auto at = lies.rfind("PK\1\2");
  const std::uint32_t huge = 0xfffffff0;
  std::memcpy(lies.data() + at + 42, &huge, 4);                            // header offset of the last member
  std::memcpy(lies.data() + lies.rfind("PK\1\2", at - 1) + 24, &huge, 4);  // size of the first
  EXPECT_FALSE(scan({.inputs = {write("lies.whl", lies)}}).errors.empty());
}

TEST_F(ScanTest, SaysWhenANameAndItsCodeDisagree) {
  copy("gfx1100.co", "rocblas/library/TensileLibrary_Type_HH_gfx1101.co");
  const Scan found = scan({.inputs = {directory}});
  ASSERT_EQ(found.files.size(), 1U);
  ASSERT_EQ(found.files[0].problems.size(), 1U);
  EXPECT_EQ(found.files[0].problems[0], "its name says gfx1101, its code is for gfx1100");
}

TEST_F(ScanTest, KpackArchivesCountForTheLibraryThatLooksForThem) {
  copy("split.so", "venv/torch/lib/libkernels.so.1");
  copy("stored.kpack", "venv/torch/.kpack/kernels_gfx1100.kpack");
  auto parts = components(scan({.inputs = {directory}}));
  ASSERT_EQ(parts.size(), 2U);  // and libother.so, which is not here
  EXPECT_EQ(parts[0].component.root, directory + "/venv/torch/lib/libkernels.so.1");
  EXPECT_EQ(targets(parts[0]), (Strings{"gfx1100"}));
  EXPECT_FALSE(parts[0].kpack_missing);
  EXPECT_EQ(ask(parts, "gfx1100").cover, elf::Cover::native);
  EXPECT_EQ(ask(parts, "gfx90a").cover, elf::Cover::none);
  // The package for another GPU beside it.
  copy("packed.kpack", "venv/torch/.kpack/kernels_gfx90a.kpack");
  parts = components(scan({.inputs = {directory}}));
  EXPECT_EQ(targets(parts[0]), (Strings{"gfx90a:sramecc+:xnack-", "gfx1100"}));
}

TEST_F(ScanTest, AKpackArchiveWhereTheLibraryDoesNotLookDoesNotCount) {
  const std::string library = directory + "/one/torch/lib/libkernels.so.1";
  copy("split.so", "one/torch/lib/libkernels.so.1");
  for (const auto* place :
       {"two/torch/.kpack/kernels_gfx1100.kpack", "one/torch/.kpack/others_gfx1100.kpack", "one/torch/lib/kernels_gfx1100.kpack"}) {
    copy("stored.kpack", place);
    const auto parts = components(scan({.inputs = {directory}}));
    const auto mine = std::ranges::find_if(parts, [&](const ComponentReport& report) { return report.component.root == library; });
    ASSERT_NE(mine, parts.end());
    EXPECT_TRUE(mine->kpack_missing) << place;
    EXPECT_EQ(mine->targets.size(), 0U) << place;
    std::filesystem::remove(directory + "/" + place);
  }
}

TEST_F(ScanTest, TheWheelsOfASplitPackageBelongTogether) {
  const std::string host = write("torch.whl", zip({{"torch/lib/libkernels.so.1", read_file(fixture_path("split.so"))}}, false));
  const std::string device = write("device.whl", zip({{"torch/.kpack/kernels_gfx1100.kpack", read_file(fixture_path("stored.kpack"))}}, false));
  const auto alone = components(scan({.inputs = {host}}));
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_TRUE(alone[0].kpack_missing);
  const auto parts = components(scan({.inputs = {host, device}}));
  const auto mine = std::ranges::find_if(parts, [&](const ComponentReport& report) { return report.component.root.starts_with(host); });
  ASSERT_NE(mine, parts.end());
  EXPECT_EQ(targets(*mine), (Strings{"gfx1100"}));
}

TEST_F(ScanTest, WhatCanHoldNoDeviceCodeIsAnErrorWithItsReason) {
  std::string tar(1024, '\0');
  tar.replace(257, 5, "ustar");
  const std::vector<std::pair<std::string, std::string>> rows{{"", "an empty file"},
                                                              {"hello", "it is no ELF file"},
                                                              {"\x7f", "it is no ELF file"},
                                                              {std::string(4096, '\0'), "it is no ELF file"},
                                                              {"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"},
                                                              {"\x1f\x8b\b", "a packed file or tree"},
                                                              {tar, "a packed file or tree"}};
  for (const auto& [content, reason] : rows)
    for (const auto* name : {"plain", "lib.so", "kernel.co", "x.hsaco", "x.kpack", "x.a"}) {
      const Scan found = scan({.inputs = {write(name, content)}});
      ASSERT_EQ(found.errors.size(), 1U) << name;
      EXPECT_EQ(found.errors[0].exit_code, 3);
      EXPECT_TRUE(found.errors[0].what.starts_with(reason)) << found.errors[0].what;
      EXPECT_FALSE(found.errors[0].remedy.empty());
      EXPECT_EQ(found.files.size(), 0U);
    }
  const Scan found = scan({.inputs = {"/bin/true", directory + "/absent"}});
  ASSERT_EQ(found.files.size(), 1U) << "a program without device code is reported as such";
  EXPECT_TRUE(found.files[0].targets.empty());
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].what, "no such file or directory");
  std::filesystem::create_directory(directory + "/nothing");
  const auto nothing = scan({.inputs = {directory + "/nothing"}}).errors;
  ASSERT_EQ(nothing.size(), 1U);
  EXPECT_EQ(nothing[0].what, "holds no file");
  write("pure/module.py", "pass");
  EXPECT_EQ(scan({.inputs = {directory + "/pure"}}).errors.size(), 0U) << "it holds files, none of which could hold device code";
  std::filesystem::create_symlink("round.so", directory + "/round.so");
  const auto looped = scan({.inputs = {directory + "/round.so"}}).errors;
  ASSERT_EQ(looped.size(), 1U);
  EXPECT_EQ(looped[0].exit_code, 3);
  EXPECT_NE(looped[0].what.find("symbolic links"), std::string::npos) << looped[0].what;
}

TEST_F(ScanTest, CodeObjectsInATreeThatAreEmptyOrSomethingElseAreDamage) {
  write("home/.triton/cache/AB/kernel.hsaco", "");
  write("home/.triton/cache/CD/kernel.hsaco", "<html>");
  write("torch/lib/hipblaslt/library/hipblasltTransform.hsaco", "");
  write("torch/.kpack/torch_gfx1100.kpack", "");
  write("notes.txt", "");
  write("libempty.so", "");
  const Scan found = scan({.inputs = {directory}});
  ASSERT_EQ(found.files.size(), 4U);
  for (const auto& file : found.files) EXPECT_EQ(file.problems.size(), 1U) << file.path;
  const auto wheel = write("x.whl", zip({{"x/lib/k.hsaco", ""}, {"x/a.bin", ""}}, true));
  const Scan inside = scan({.inputs = {wheel}});
  ASSERT_EQ(inside.files.size(), 1U);
  EXPECT_EQ(inside.files[0].problems, Strings{"an empty file, where device code belongs"});
}

TEST_F(ScanTest, SectionsWithoutNamesAreDamageAndNotAbsence) {
  std::string library = read_file(fixture_path("library.so"));
  std::uint16_t names = 0xfff0;
  std::memcpy(library.data() + 62, &names, 2);
  const Scan found = scan({.inputs = {write("lib.so", library)}});
  ASSERT_EQ(found.files.size(), 1U);
  ASSERT_EQ(found.files[0].problems.size(), 1U);
  EXPECT_NE(found.files[0].problems[0].find("names of its"), std::string::npos) << found.files[0].problems[0];
}

TEST_F(ScanTest, WheelsInsideArchivesAreOpened) {
  const std::string wheel = zip({{"k/lib/libk.so", read_file(fixture_path("library.so"))}}, false);
  const std::string house = zip({{"wheels/k.whl", wheel}, {"broken.whl", "no zip"}}, false);
  const Scan found = scan({.inputs = {write("house.zip", zip({{"inner.zip", house}}, true))}});
  ASSERT_EQ(found.files.size(), 1U);
  EXPECT_EQ(found.files[0].path, directory + "/house.zip!inner.zip!wheels/k.whl!k/lib/libk.so");
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].where, directory + "/house.zip!inner.zip!broken.whl");
  // A bomb of archives in archives ends.
  std::string bomb = wheel;
  for (int i = 0; i < 12; ++i) bomb = zip({{"a.zip", bomb}, {"b.zip", bomb}}, false);
  const Scan ended = scan({.inputs = {write("bomb.zip", bomb)}});
  EXPECT_EQ(ended.files.size(), 0U);
  EXPECT_EQ(ended.errors.size(), 32U);
  EXPECT_EQ(ended.errors[0].what, "archives are nested too deep");
}

TEST_F(ScanTest, ALibraryWithAFileForEachTargetIsOnePart) {
  copy("gfx1100.co", "lib/libMIOpenCKconv_gfx1100.so");
  copy("gfx90a.co", "lib/libMIOpenCKconv_gfx90a-xnack-.so");
  copy("gfx1100.co", "lib/libdevice_conv_operations_gfx1100.a");
  copy("gfx90a.co", "lib/libdevice_conv_operations_gfx90a.a");
  copy("gfx1100.co", "lib/tool_gfx1100extra.so");
  const auto parts = components(scan({.inputs = {directory}}));
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(targets(*part(parts, "miopen-ck")), (Strings{"gfx90a:sramecc+:xnack-", "gfx1100"}));
  EXPECT_TRUE(part(parts, "miopen-ck")->component.fallback);
  EXPECT_EQ(targets(*part(parts, "libdevice_conv_operations_*.a")), (Strings{"gfx90a:sramecc+:xnack-", "gfx1100"}));
  EXPECT_NE(part(parts, "tool_gfx1100extra.so"), nullptr);
  EXPECT_EQ(ask(parts, "gfx90a:sramecc+:xnack-").first_to_fail->component->component.id, "tool_gfx1100extra.so");
}

TEST_F(ScanTest, EachTargetMayHaveADirectoryOfItsOwn) {
  write("torch/lib/rocblas/library/gfx1100/TensileLibrary_lazy.dat", "index");
  copy("gfx1100.co", "torch/lib/rocblas/library/gfx1100/Kernels.so-000.hsaco");
  copy("gfx1100.co", "torch/lib/hipblaslt/library/gfx942/TensileLibrary_x.co");
  const Scan found = scan({.inputs = {directory}});
  const auto parts = components(found);
  EXPECT_EQ(targets(*part(parts, "rocblas")), Strings{"gfx1100"});
  const auto wrong = std::ranges::find_if(found.files, [](const FileReport& file) { return file.path.ends_with("_x.co"); });
  ASSERT_NE(wrong, found.files.end());
  EXPECT_EQ(wrong->problems, Strings{"its name says gfx942, its code is for gfx1100"});
}

TEST_F(ScanTest, MiopenDatabasesTellTheComputeUnits) {
  for (const auto* name : {"gfx942130.HIP.fdb.txt", "gfx1030_36.HIP.fdb.txt", "gfx90a.HIP.fdb.txt"})
    write(std::string("share/miopen/db/") + name, "1=a:b\n");
  const Scan found = scan({.inputs = {directory}});
  ASSERT_EQ(found.files.size(), 3U);
  std::vector<int> units;
  for (const auto& file : found.files) units.push_back(file.compute_units);
  EXPECT_EQ(units, (std::vector<int>{36, 0, 0x130}));
}

TEST_F(ScanTest, DoesNotFollowLinksInsideATree) {
  copy("library.so", "lib/liba.so.1");
  std::filesystem::create_symlink("liba.so.1", directory + "/lib/liba.so");
  std::filesystem::create_directory_symlink(directory, directory + "/lib/loop");
  EXPECT_EQ(scan({.inputs = {directory}}).files.size(), 1U);
}

}  // namespace
}  // namespace ff::binary
