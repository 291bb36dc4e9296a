#include "capture/split_library.h"

#include "base/mapped_file.h"
#include "capture/reader.h"

namespace ff::capture {
namespace {

constexpr std::string_view placeholder = "@GFXARCH@";

void add_archive(const std::string& path, std::string_view binary, std::set<std::string>& targets) {
  const auto file = MappedFile::open(path);
  if (!file) return;
  for (const auto& object : elf::list_code_objects(file->bytes()).objects)
    if (object.container.ends_with("kpack") && object.id.substr(0, object.id.rfind('#')) == binary) targets.insert(object.target.to_string());
}

}  // namespace

void add_split_targets(const std::string& library, const elf::Listing& listing, std::set<std::string>& targets) {
  const std::string here = library.substr(0, library.rfind('/') + 1);
  for (const auto& wanted : listing.kpack_paths) {
    const std::string path = wanted.starts_with('/') ? wanted : here + wanted;
    const auto at = path.find(placeholder);
    const auto slash = path.rfind('/') + 1;
    if (at == std::string::npos) {
      add_archive(path, listing.kpack_binary, targets);
      continue;
    }
    if (at < slash) continue;  // a directory for each target was not seen
    const std::string_view before = std::string_view(path).substr(slash, at - slash), after = std::string_view(path).substr(at + placeholder.size());
    int error = 0;
    for (const auto& name : directory_names(path.substr(0, slash), error))
      if (name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after))
        add_archive(path.substr(0, slash) + name, listing.kpack_binary, targets);
  }
}

}  // namespace ff::capture
