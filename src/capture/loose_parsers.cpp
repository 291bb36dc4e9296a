#include "capture/loose_parsers.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/text.h"
#include "capture/recognise.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

Value package(std::string_view name, std::string_view version, std::string_view source, std::uint64_t line, bool editable) {
  return Value::object(
      {{"name", to_utf8(name)}, {"version", to_utf8(version)}, {"path", source}, {"line", line}, {"editable", editable}, {"user_site", false}});
}

bool is_package_name(std::string_view s) {
  return !s.empty() && std::isalnum(static_cast<unsigned char>(s[0])) != 0 &&
         std::ranges::all_of(s, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

/// "torch==2.9.0", "torch @ file:///…", "-e git+…#egg=lerobot".
Value parse_requirement(std::string_view line, std::string_view source, std::uint64_t number) {
  if (const auto equals = line.find("=="); equals != std::string_view::npos) {
    std::string_view name = trim(line.substr(0, equals));
    name = name.substr(0, name.find('['));
    std::string_view version = trim(line.substr(equals + 2));
    version = version.substr(0, version.find_first_of(" ;\\#"));
    return is_package_name(name) && !version.empty() ? package(name, version, source, number, false) : Value();
  }
  if (line.starts_with("-e ")) {
    const auto egg = line.find("#egg=");
    return egg != std::string_view::npos ? package(trim(line.substr(egg + 5)), "", source, number, true) : Value();
  }
  if (const auto at = line.find(" @ "); at != std::string_view::npos && is_package_name(trim(line.substr(0, at))))
    return package(trim(line.substr(0, at)), "", source, number, contains(line, " @ file://"));
  return {};
}

std::string_view after(std::string_view line, std::string_view label) {
  return line.starts_with(label) ? trim(line.substr(label.size())) : std::string_view{};
}

/// "N/A" is None; "Could not collect" and nothing at all are unknown (the member is left out).
void set_build(Value& torch, std::string_view name, std::string_view value) {
  if (value == "N/A" || value == "None")
    torch.set(name, nullptr);
  else if (!value.empty() && value != "Could not collect")
    torch.set(name, value);
}

std::pair<std::uint32_t, std::string> number_and_name(std::string_view s) {
  const auto open = s.find('(');
  const auto number = to_integer<std::uint32_t>(s.substr(0, open));
  std::string name;
  if (open != std::string_view::npos && s.ends_with(')')) name = s.substr(open + 1, s.size() - open - 2);
  return {number.value_or(unknown_id), name};
}

std::string unquote(std::string_view value) {
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
    value = value.substr(1, value.size() - 2);
  return std::string(value);
}

std::uint32_t mode_bits(std::string_view text) {
  std::uint32_t mode = 0;
  for (std::size_t i = 0; i < 9 && i + 1 < text.size(); ++i)
    if (text[i + 1] != '-') mode |= 1u << (8 - i);
  return mode;
}

std::string node_path(std::string_view name, std::string_view directory) {
  if (name.starts_with('/')) return std::string(name);
  if (!directory.empty()) return std::string(directory) + "/" + std::string(name);
  return (name.starts_with("card") || name.starts_with("renderD") ? "/dev/dri/" : "/dev/") + std::string(name);
}

int error_from_text(std::string_view text) {
  if (contains(text, "No such file or directory")) return ENOENT;
  if (contains(text, "Permission denied")) return EACCES;
  if (contains(text, "Operation not permitted")) return EPERM;
  return 0;
}

}  // namespace

Value parse_pip_list(std::string_view text, std::string_view source, std::uint64_t first_line) {
  Value out = Value::list();
  if (trim(text).starts_with('[')) {
    if (const auto json = parse_json(text))
      for (const Value& item : json->items())
        if (item["name"].is_text())
          out.push(package(item["name"].as_text(), item["version"].as_text(), source, first_line, item.find("editable_project_location") != nullptr));
    return out;
  }
  std::uint64_t number = first_line;
  bool has_location = false;
  for (const std::string_view line : lines(text)) {
    const std::uint64_t here = number++;
    const std::string_view s = trim(line);
    if (s.empty() || s.starts_with("---") || s.starts_with('#')) continue;
    const auto parts = words(s);
    if (parts[0] == "Package" && parts.size() > 1 && parts[1] == "Version") {
      has_location = contains(s, "Editable project location");
      continue;
    }
    if (Value found = parse_requirement(s, source, here); !found.is_null()) {
      out.push(std::move(found));
      continue;
    }
    if (parts.size() < 2 || parts.size() > 4 || !is_package_name(parts[0])) continue;
    const char first = parts[1][0];
    if (first < '0' || first > '9') continue;
    out.push(package(parts[0], parts[1], source, here, has_location && parts.size() > 2));
  }
  return out;
}

Value parse_collect_env(std::string_view text, std::string_view source, std::uint64_t first_line) {
  Value entry = Value::object({{"prefix", ""}, {"asked_by", source}});
  Value torch = Value::object();
  Value packages = Value::list();
  std::uint64_t number = first_line;
  for (const std::string_view line : lines(text)) {
    const std::uint64_t here = number++;
    if (const auto v = after(line, "PyTorch version:"); !v.empty() && v != "N/A") torch.set("version", v);
    if (const auto v = after(line, "ROCM used to build PyTorch:"); !v.empty()) set_build(torch, "hip", v);
    if (const auto v = after(line, "CUDA used to build PyTorch:"); !v.empty() && !v.starts_with("Could not") && v != "Could not collect")
      set_build(torch, "cuda", v);
    if (const auto v = after(line, "Python version:"); !v.empty()) entry.set("version", v.substr(0, v.find(' ')));
    for (const std::string_view mark : {"[pip3] ", "[pip] ", "[conda] "})
      if (line.starts_with(mark)) {
        const std::string_view rest = line.substr(mark.size());
        if (Value found = parse_requirement(rest, source, here); !found.is_null()) {
          packages.push(std::move(found));
        } else if (const auto parts = words(rest); parts.size() >= 2 && is_package_name(parts[0])) {
          packages.push(package(parts[0], parts[1], source, here, false));
        }
      }
  }
  if (torch["version"].is_text()) {
    torch.set("path", source);
    const bool listed = std::ranges::any_of(packages.items(), [](const Value& p) { return p["name"].as_text() == "torch"; });
    if (!listed) packages.push(package("torch", torch["version"].as_text(), source, first_line, false));
    entry.set("torch", torch);
  }
  entry.set("packages", packages);
  return entry;
}

Value parse_environment(std::string_view text) {
  Value out = Value::object();
  for (std::string_view line : lines(text)) {
    line = trim(line);
    if (line.starts_with("export ")) line.remove_prefix(7);
    if (line.starts_with("declare -x ")) line.remove_prefix(11);
    if (!is_assignment(line)) continue;
    const auto equals = line.find('=');
    const std::string_view name = line.substr(0, equals);
    out.set(name, to_utf8(redact_value(name, unquote(line.substr(equals + 1)))));
  }
  return out;
}

Value parse_id(std::string_view text) {
  for (const std::string_view line : lines(text)) {
    if (!line.starts_with("uid=")) continue;
    Value out = Value::object();
    for (const std::string_view field : words(line)) {
      const auto equals = field.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = field.substr(0, equals);
      const std::string_view value = field.substr(equals + 1);
      if (name == "uid") {
        const auto [uid, user] = number_and_name(value);
        out.set("uid", uid);
        out.set("euid", uid);
        out.set("name", user);
      } else if (name == "gid") {
        out.set("gid", number_and_name(value).first);
      } else if (name == "groups") {
        Value groups = Value::list();
        for (const std::string_view one : split(value, ',')) {
          const auto [gid, group] = number_and_name(one);
          if (gid != unknown_id) groups.push(Value::object({{"gid", gid}, {"name", group}}));
        }
        out.set("groups", groups);
      }
    }
    return out;
  }
  return {};
}

std::vector<ListedNode> parse_ls_nodes(std::string_view text) {
  std::vector<ListedNode> out;
  std::string directory;
  for (const std::string_view line : lines(text)) {
    if (line.starts_with('/') && line.ends_with(':')) {
      directory = line.substr(0, line.size() - 1);
      continue;
    }
    if (line.starts_with("ls:")) {
      auto path = between(line, "'", "'");
      if (!path) path = between(line, "access ", ":");
      const int error = error_from_text(line);
      if (path && path->starts_with('/') && error != 0) out.push_back({std::string(*path), {}, error});
      continue;
    }
    const auto parts = words(line);
    if (parts.size() < 7 || parts[0].size() < 10 || std::string_view("cbdl-").find(parts[0][0]) == std::string_view::npos) continue;
    ListedNode node;
    node.stat.type = parts[0][0] == '-' ? 'f' : parts[0][0];
    node.stat.mode = mode_bits(parts[0]);
    if (parts[0].ends_with('+')) node.stat.acl = "+";
    const auto id = [](std::string_view s, std::uint32_t& number, std::string& name) {
      if (const auto n = to_integer<std::uint32_t>(s)) {
        number = *n;
      } else {
        name = s;
        number = s == "root" ? 0 : unknown_id;
      }
    };
    id(parts[2], node.stat.uid, node.stat.user);
    id(parts[3], node.stat.gid, node.stat.group);
    if (node.stat.type == 'c' || node.stat.type == 'b') {
      // "226, 128" or "226,128"
      const std::string_view first = parts[4];
      const auto comma = first.find(',');
      if (comma == std::string_view::npos) continue;
      node.stat.major = to_integer<std::uint32_t>(first.substr(0, comma)).value_or(0);
      node.stat.minor = to_integer<std::uint32_t>(comma + 1 < first.size() ? first.substr(comma + 1) : parts[5]).value_or(0);
    }
    std::string_view name = parts.back();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (parts[i] == "->" && i > 0) name = parts[i - 1];
    node.path = node_path(name, directory);
    if (node.path.starts_with("/dev/")) out.push_back(std::move(node));
  }
  return out;
}

std::vector<FileValue> parse_file_values(std::string_view text) {
  std::vector<FileValue> out;
  bool open = false;
  std::uint64_t number = 0;
  const auto is_path = [](std::string_view s) {
    return (s.starts_with("/sys/") || s.starts_with("/proc/") || s.starts_with("/etc/")) && s.find(' ') == std::string_view::npos;
  };
  for (const std::string_view line : lines(text)) {
    ++number;
    std::string_view heading;
    if (line.starts_with("==> ") && line.ends_with(" <==")) heading = line.substr(4, line.size() - 8);
    if (line.starts_with("# ")) heading = trim(line.substr(2));
    if (is_path(heading)) {
      out.push_back({std::string(heading), "", number + 1});
      open = true;
      continue;
    }
    if (const auto colon = line.find(':'); colon != std::string_view::npos && line.starts_with('/')) {
      // The path may hold colons itself (PCI addresses): the value begins after the last name that looks like one.
      const auto slash = line.rfind('/');
      auto at = line.find(':', slash);
      if (at == std::string_view::npos) at = colon;
      if (is_path(line.substr(0, at))) {
        const std::string path(line.substr(0, at));
        const std::string value = std::string(line.substr(at + 1)) + "\n";
        if (!out.empty() && out.back().path == path)
          out.back().content += value;
        else
          out.push_back({path, value, number});
        open = false;
        continue;
      }
    }
    if (open) out.back().content += std::string(line) + "\n";
  }
  // head(1) puts an empty line between its blocks.
  for (FileValue& value : out)
    while (value.content.ends_with("\n\n")) value.content.pop_back();
  return out;
}

std::string lsmod_to_proc_modules(std::string_view text) {
  const auto all = lines(text);
  if (all.empty() || !all[0].starts_with("Module ")) return {};
  std::string out;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto parts = words(all[i]);
    if (parts.size() < 3) continue;
    out += std::string(parts[0]) + " " + std::string(parts[1]) + " " + std::string(parts[2]) + " " +
           (parts.size() > 3 ? std::string(parts[3]) + "," : "-") + " Live 0x0000000000000000\n";
  }
  return out;
}

}  // namespace ff::capture
