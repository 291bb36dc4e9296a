#include "cli/data_show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "dataset/show.h"
#include "report/plot.h"
#include "report/style.h"

namespace ff::cli {
namespace {

constexpr std::size_t most_episodes = 20;
constexpr std::size_t name_width = 28;

std::vector<double> numbers(const Value& list) {
  std::vector<double> out;
  for (const auto& v : list.items()) out.push_back(v.as_real(std::numeric_limits<double>::quiet_NaN()));
  return out;
}

std::string clock(double seconds) {
  const auto s = std::lround(seconds);
  return s >= 3600 ? fmt::format("{} h {:02} min", s / 3600, s / 60 % 60)
         : s >= 60 ? fmt::format("{} min {:02} s", s / 60, s % 60)
                   : fmt::format("{:.1f} s", seconds);
}

std::string shape_text(const Value& shape) {
  std::vector<std::string> sizes;
  for (const auto& n : shape.items()) sizes.push_back(n.to_string());
  return join(sizes, "x");
}

std::string clean(std::string_view text, std::size_t most = 200) { return report::printable(text, most); }

/// The screen and the Markdown report hold the same tables; only their dress differs.
class Page {
 public:
  Page(const Value& d, bool markdown, bool all, const report::Style& style) : d_(d), markdown_(markdown), all_(all), style_(style) {}

  std::string text() {
    head();
    tasks();
    features();
    videos();
    if (!d_["episode"].is_null()) one_episode();
    episodes();
    return out_.str();
  }

 private:
  void title(const std::string& text) {
    if (markdown_)
      out_ << "\n## " << text << "\n\n";
    else
      out_ << "\n" << style_.bold(text) << "\n";
  }
  /// A table: the first line of cells is the heading. On the screen columns are as wide as their widest cell, up to `most`.
  void table(const std::vector<std::vector<std::string>>& lines, const std::vector<std::size_t>& most) {
    std::vector<std::size_t> width(lines.front().size());
    for (const auto& line : lines)
      for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::min(most[i], std::max(width[i], report::columns_of(line[i])));
    for (std::size_t l = 0; l < lines.size(); ++l) {
      std::string line;
      for (std::size_t i = 0; i < lines[l].size(); ++i)
        line += markdown_ ? "| " + replace_all(lines[l][i], "|", "\\|") + " " : "  " + report::cell(lines[l][i], width[i]);
      if (markdown_) line += "|";
      while (!markdown_ && line.ends_with(' ')) line.pop_back();
      out_ << (l == 0 && !markdown_ ? style_.dim(line) : line) << "\n";
      if (l == 0 && markdown_) {
        for (std::size_t i = 0; i < lines[l].size(); ++i) out_ << "|---";
        out_ << "|\n";
      }
    }
  }

  void head() {
    const std::string line = fmt::format(
        "LeRobot {} · {} · {} episodes · {} rows · {:.4g} fps · {} · {}{}", d_["format"].to_string(),
        d_["robot_type"].is_text() ? clean(d_["robot_type"].as_text()) : "robot not named", d_["episodes"].as_int(), d_["rows"].as_int(),
        d_["fps"].as_real(), clock(d_["seconds"].as_real()), human_bytes(static_cast<std::uint64_t>(d_["bytes"].as_int())),
        d_["video_bytes"].as_int() > 0 ? fmt::format(" ({} of video)", human_bytes(static_cast<std::uint64_t>(d_["video_bytes"].as_int()))) : "");
    if (markdown_)
      out_ << "# " << clean(d_["path"].as_text()) << "\n\n" << line << "\n";
    else
      out_ << style_.bold(clean(d_["path"].as_text())) << "\n" << line << "\n";
    const Value& l = d_["lengths"];
    if (l.is_object())
      out_ << (markdown_ ? "\n" : "")
           << (l["min"] == l["max"] ? fmt::format("every episode has {} rows\n", l["min"].as_int())
                                    : fmt::format("episode length: {} to {} rows, median {}  {}\n", l["min"].as_int(), l["max"].as_int(),
                                                  l["median"].as_int(), report::bars(numbers(l["histogram"]))));
  }

  void tasks() {
    title(fmt::format("Tasks ({})", d_["tasks"].items().size()));
    std::vector<std::vector<std::string>> lines{{"#", "task", "episodes", "rows"}};
    for (const auto& t : d_["tasks"].items())
      if (all_ || lines.size() <= most_episodes)
        lines.push_back({t["task_index"].to_string(), clean(t["task"].as_text()), t["episodes"].to_string(), t["rows"].to_string()});
    table(lines, {6, 70, 10, 12});
    more(d_["tasks"].items().size(), "tasks");
  }

  void features() {
    title("Features");
    std::vector<std::vector<std::string>> lines{{"feature", "type", "dimension", "min", "max", "mean", "std", "histogram"}};
    for (const auto& f : d_["features"].items()) {
      const std::string type =
          f["dtype"].to_string() + (f["shape"].items().size() == 1 && f["shape"].items()[0].as_int() == 1 ? "" : " " + shape_text(f["shape"]));
      const auto& dimensions = f["dimensions"].items();
      if (dimensions.empty()) {
        lines.push_back({clean(f["name"].as_text()), type, "", "", "", "", "", ""});
        continue;
      }
      for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const Value& m = dimensions[i];
        const bool constant = m["min"] == m["max"];
        lines.push_back({i == 0 ? clean(f["name"].as_text()) : "", i == 0 ? type : "",
                         dimensions.size() == 1 && m["name"].is_null() ? ""
                         : m["name"].is_text()                         ? fmt::format("{} {}", i, clean(m["name"].as_text()))
                                                                       : std::to_string(i),
                         fmt::format("{:.4g}", m["min"].as_real()), fmt::format("{:.4g}", m["max"].as_real()),
                         fmt::format("{:.4g}", m["mean"].as_real()), fmt::format("{:.4g}", m["std"].as_real()),
                         constant ? "constant" : report::bars(numbers(m["histogram"]))});
      }
    }
    table(lines, {name_width, 20, 28, 11, 11, 11, 11, dataset::show_bins});
  }

  void videos() {
    std::vector<std::vector<std::string>> lines{{"camera", "files", "frames", "codec", "size", "fps", "key frames"}};
    for (const auto& f : d_["features"].items()) {
      const Value& v = f["video"];
      if (!v.is_object()) continue;
      const double frames = v["frames"].as_real();
      lines.push_back(
          {clean(f["name"].as_text()),
           v["readable"] == v["files"] ? v["files"].to_string() : fmt::format("{} of {} readable", v["readable"].as_int(), v["files"].as_int()),
           v["frames"].to_string(), v["codec"].is_text() ? std::string(v["codec"].as_text()) : "?",
           fmt::format("{}x{}", v["width"].as_int(), v["height"].as_int()), fmt::format("{:.4g}", v["fps"].as_real()),
           frames > 0 ? fmt::format("1 in {:.3g}", frames / std::max(1.0, v["key_frames"].as_real())) : "?"});
    }
    if (lines.size() == 1) return;
    title("Videos");
    table(lines, {40, 20, 12, 10, 12, 8, 12});
  }

  void one_episode() {
    title(fmt::format("Episode {}, from its first to its last row", d_["episode"]["episode"].as_int()));
    std::vector<std::vector<std::string>> lines{{"feature", "dimension", "curve"}};
    for (const auto& f : d_["episode"]["features"].items()) {
      bool first = true;
      std::size_t i = 0;
      for (const auto& m : f["dimensions"].items()) {
        lines.push_back({first ? clean(f["name"].as_text()) : "",
                         m["name"].is_text() ? fmt::format("{} {}", i, clean(m["name"].as_text())) : std::to_string(i),
                         report::curve(numbers(m["curve"]))});
        first = false;
        ++i;
      }
    }
    table(lines, {name_width, 28, dataset::show_points});
  }

  void episodes() {
    title("Episodes");
    std::vector<std::vector<std::string>> lines{{"#", "rows", "time", "how much the action moves", "task", "first row"}};
    for (const auto& e : d_["episode_list"].items()) {
      if (!all_ && lines.size() > most_episodes) break;
      std::vector<std::string> texts;
      for (const auto& t : e["tasks"].items()) texts.push_back(clean(t.as_text()));
      lines.push_back({e["episode"].to_string(), e["rows"].to_string(), e["seconds"].is_number() ? clock(e["seconds"].as_real()) : "",
                       report::bars(numbers(e["motion"])), join(texts, "; "), clean(e["file"].as_text())});
    }
    table(lines, {8, 10, 12, dataset::show_bins + 1, 40, 60});
    more(d_["episode_list"].items().size(), "episodes");
  }

  void more(std::size_t n, const char* what) {
    if (!all_ && n > most_episodes) out_ << fmt::format("{}… {} {} in all (--all)\n", markdown_ ? "\n" : "  ", n, what);
  }

  const Value& d_;
  bool markdown_, all_;
  const report::Style& style_;
  std::ostringstream out_;
};

}  // namespace

int data_show(const DataShowOptions& options) {
  if (const auto given = given_path(options.path); !given) return report_error(given.error());
  const auto parquet = dataset::Parquet::load();
  if (!parquet) return report_error(parquet.error());
  Progress progress(!options.json);
  progress.show("… reading every row");
  const auto document = dataset::describe_dataset(options.path, options.episode, *parquet);
  progress.clear();
  if (!document) return report_error(document.error());
  if (!options.markdown.empty()) {
    const report::Style plain(false);
    if (auto done = write_file(options.markdown, Page(*document, true, options.all, plain).text()); !done) return report_error(done.error());
  }
  const auto style = report::Style::for_stdout();
  if (options.json)
    print_document(*document);
  else
    std::cout << Page(*document, false, options.all, style).text();
  return 0;
}

}  // namespace ff::cli
