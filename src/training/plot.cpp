#include "training/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace ff::training {
namespace {

struct Points {
  std::vector<double> x, y, marks;
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  bool logarithmic = false;
};

Points points_of(const Value& plot) {
  Points p;
  for (const auto& v : plot["x"].items()) p.x.push_back(v.as_real());
  for (const auto& v : plot["y"].items()) p.y.push_back(v.is_number() ? v.as_real() : unknown);
  for (const auto& v : plot["marks"].items()) p.marks.push_back(v.as_real());
  p.x.resize(std::min(p.x.size(), p.y.size()));
  p.y.resize(p.x.size());
  bool first = true;
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    p.x_low = i == 0 ? p.x[i] : std::min(p.x_low, p.x[i]);
    p.x_high = i == 0 ? p.x[i] : std::max(p.x_high, p.x[i]);
    if (!std::isfinite(p.y[i])) continue;
    p.y_low = first ? p.y[i] : std::min(p.y_low, p.y[i]);
    p.y_high = first ? p.y[i] : std::max(p.y_high, p.y[i]);
    first = false;
  }
  p.logarithmic = p.y_low > 0 && p.y_high / p.y_low > 1000;
  return p;
}

/// 0 at the bottom, 1 at the top.
double height(const Points& p, double y) {
  if (p.y_high <= p.y_low) return 0.5;
  if (p.logarithmic) return std::log(y / p.y_low) / std::log(p.y_high / p.y_low);
  return (y - p.y_low) / (p.y_high - p.y_low);
}

std::string escaped(std::string_view s) {
  std::string out = replace_all(std::string(s), "&", "&amp;");
  return replace_all(replace_all(std::move(out), "<", "&lt;"), ">", "&gt;");
}

}  // namespace

Value plot_points(std::string title, std::string x_name, const std::vector<double>& x, const std::vector<double>& y,
                  const std::vector<double>& marks) {
  if (x.size() < 2 || x.size() != y.size()) return {};
  constexpr std::size_t most = 160;
  Value xs = Value::list(), ys = Value::list(), at = Value::list();
  const auto rounded = [](double v) { return std::isfinite(v) ? Value(std::strtod(fmt::format("{:.6g}", v).c_str(), nullptr)) : Value(); };
  const auto put = [&](std::size_t i) {
    xs.push(x[i]);
    ys.push(rounded(y[i]));
  };
  const std::size_t piece = x.size() > most ? (2 * x.size() + most - 1) / most : 1;
  for (std::size_t from = 0; from < x.size(); from += piece) {
    const std::size_t to = std::min(x.size(), from + piece);
    std::size_t low = from, high = from, bad = to;
    for (std::size_t i = from; i < to; ++i) {
      if (!std::isfinite(y[i])) bad = i;
      if (!(y[i] >= y[low])) low = i;
      if (!(y[i] <= y[high])) high = i;
    }
    if (bad < to)
      put(bad);
    else if (low == high)
      put(low);
    else {
      put(std::min(low, high));
      put(std::max(low, high));
    }
  }
  for (const double m : marks)
    if (std::isfinite(m)) at.push(m);
  return Value::object(
      {{"title", std::move(title)}, {"x_name", std::move(x_name)}, {"x", std::move(xs)}, {"y", std::move(ys)}, {"marks", std::move(at)}});
}

Value plot_value(const Log& log, Quantity quantity, const std::vector<double>& marks) {
  std::vector<double> x, y;
  bool steps = true;
  for (const auto& r : log.records)
    if (r.holds(quantity)) steps = steps && std::isfinite(r.step);
  std::size_t n = 0;
  const bool bytes = quantity == Quantity::allocated || quantity == Quantity::reserved || quantity == Quantity::host_memory;
  for (const auto& r : log.records) {
    ++n;
    if (!r.holds(quantity)) continue;
    x.push_back(steps ? r.step : static_cast<double>(n));
    y.push_back(r.of(quantity) / (bytes ? 1024.0 * 1024 : 1.0));
  }
  return plot_points(std::string(quantity_name(quantity)) + (bytes ? " (MiB)" : ""), steps ? "step" : "record", x, y, marks);
}

std::string plot_text(const Value& plot, std::size_t width, std::size_t rows) {
  static constexpr std::array<std::string_view, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const Points p = points_of(plot);
  if (p.x.size() < 2 || p.x_high <= p.x_low || rows == 0) return {};
  constexpr std::size_t label = 11;
  const std::size_t columns = std::clamp<std::size_t>(width > label + 4 ? width - label - 2 : 20, 20, 120);
  std::vector<double> level(columns, unknown);
  std::vector<bool> bad(columns, false), marked(columns, false);
  const auto column = [&](double x) {
    return std::min(columns - 1, static_cast<std::size_t>(std::clamp((x - p.x_low) / (p.x_high - p.x_low), 0.0, 1.0) * static_cast<double>(columns)));
  };
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    const auto c = column(p.x[i]);
    if (!std::isfinite(p.y[i]))
      bad[c] = true;
    else
      level[c] = std::isfinite(level[c]) ? std::max(level[c], height(p, p.y[i])) : height(p, p.y[i]);
  }
  // Between two points the line goes on.
  for (std::size_t c = 1; c < columns; ++c)
    if (!std::isfinite(level[c]) && !bad[c]) level[c] = level[c - 1];
  for (const double m : p.marks) marked[column(m)] = true;
  std::string out = fmt::format("{}{}\n", plot["title"].as_text(), p.logarithmic ? " (logarithmic)" : "");
  for (std::size_t row = rows; row-- > 0;) {
    const std::string edge = row + 1 == rows ? fmt::format("{:.4g}", p.y_high) : row == 0 ? fmt::format("{:.4g}", p.y_low) : "";
    out += fmt::format("{:>{}} ┤", edge, label - 1);
    for (std::size_t c = 0; c < columns; ++c) {
      if (bad[c]) {
        out += row == 0 ? "×" : "·";
        continue;
      }
      const double eighths = std::isfinite(level[c]) ? 1 + level[c] * (static_cast<double>(rows * 8) - 1) : 0;
      const double here = std::clamp(eighths - static_cast<double>(row * 8), 0.0, 8.0);
      out += blocks[static_cast<std::size_t>(here)];
    }
    out += "\n";
  }
  if (std::ranges::find(marked, true) != marked.end()) {
    out += std::string(label + 1, ' ');
    for (std::size_t c = 0; c < columns; ++c) out += marked[c] ? "▲" : " ";
    out += "\n";
  }
  const std::string from = fmt::format("{} {:.0f}", plot["x_name"].as_text(), p.x_low), to = fmt::format("{:.0f}", p.x_high);
  out += std::string(label + 1, ' ') + from + std::string(columns > from.size() + to.size() ? columns - from.size() - to.size() : 1, ' ') + to + "\n";
  return out;
}

std::string plot_svg(const Value& plot) {
  const Points p = points_of(plot);
  if (p.x.size() < 2 || p.x_high <= p.x_low) return {};
  constexpr double w = 640, h = 200, left = 84, right = 15, top = 30, bottom = 30;
  const auto px = [&](double x) { return left + (x - p.x_low) / (p.x_high - p.x_low) * (w - left - right); };
  const auto py = [&](double y) { return h - bottom - height(p, y) * (h - top - bottom); };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n<text x=\"{2}\" y=\"18\" fill=\"#222\">{3}{4}</text>\n",
      w, h, left, escaped(plot["title"].as_text()), p.logarithmic ? " (logarithmic)" : "");
  out += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#888\"/>\n", left, top, h - bottom, w - right);
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.4g}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.4g}</text>\n",
                     left - 6, top + 4, p.y_high, left - 6, h - bottom, p.y_low);
  out += fmt::format("<text x=\"{}\" y=\"{}\">{} {:.0f}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f}</text>\n", left, h - 8,
                     escaped(plot["x_name"].as_text()), p.x_low, w - right, h - 8, p.x_high);
  for (const double m : p.marks)
    if (m >= p.x_low && m <= p.x_high)
      out += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#c33\" stroke-dasharray=\"4 3\"/>\n", px(m), top, h - bottom);
  std::string path;
  bool pen = false;
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    if (!std::isfinite(p.y[i])) {
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{}\" r=\"3\" fill=\"#c33\"/>\n", px(p.x[i]), h - bottom);
      pen = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", px(p.x[i]), py(p.y[i]));
    pen = true;
  }
  return out + "<path d=\"" + path + "\" fill=\"none\" stroke=\"#06c\" stroke-width=\"1.5\"/>\n</svg>\n";
}

}  // namespace ff::training
