#include "learn/run_log.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>

namespace tahl::learn {
namespace {

constexpr double kWidth = 720, kHeight = 240, kLeft = 56, kGap = 44;

struct Line {
  std::string color, label;
  std::vector<std::pair<double, double>> points;
};

// The mean of each run of points, so that a line has at most a few hundred.
std::vector<std::pair<double, double>> thin(const std::vector<std::pair<double, double>>& points) {
  const std::size_t step = std::max<std::size_t>(1, points.size() / 300);
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < points.size(); i += step) {
    double x = 0, y = 0;
    const std::size_t n = std::min(step, points.size() - i);
    for (std::size_t j = i; j < i + n; ++j) x += points[j].first, y += points[j].second;
    out.emplace_back(x / static_cast<double>(n), y / static_cast<double>(n));
  }
  return out;
}

std::string panel(const std::vector<Line>& lines, double top, const std::string& title) {
  double x1 = 1, y0 = 1e30, y1 = -1e30;
  for (const Line& line : lines)
    for (const auto& [x, y] : line.points)
      x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
  if (y0 > y1) return {};
  if (y1 - y0 < 1e-9) y1 = y0 + 1;
  const auto px = [&](double x) { return kLeft + x / x1 * kWidth; };
  const auto py = [&](double y) { return top + kHeight - (y - y0) / (y1 - y0) * kHeight; };
  std::string svg = fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", kLeft,
                                top - 8, title);
  for (int i = 0; i <= 4; ++i) {
    const double y = y0 + (y1 - y0) * i / 4, x = x1 * i / 4;
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}h{2}\" stroke=\"#ddd\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:.3g}</text>\n",
        kLeft, py(y), kWidth, kLeft - 6, py(y) + 4, y);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.3g} M</text>\n",
                       px(x), top + kHeight + 16, x / 1e6);
  }
  double legend = kLeft + kWidth - 8;
  for (const Line& line : lines) {
    std::string path;
    for (const auto& [x, y] : line.points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", px(x), py(y));
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                       line.color);
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" text-anchor=\"end\">{}</text>\n",
                    legend, top - 8, line.color, line.label);
    legend -= 9.0 * static_cast<double>(line.label.size()) + 16;
  }
  return svg;
}

template <class Point>
std::vector<std::pair<double, double>> column(const std::vector<Point>& points, double Point::*y,
                                              double scale = 1) {
  std::vector<std::pair<double, double>> out;
  for (const Point& p : points) out.emplace_back(p.positions, p.*y * scale);
  return thin(out);
}

}  // namespace

std::string to_json(const TrainPoint& p) {
  return fmt::format(
      R"({{"step":{:.0f},"positions":{:.0f},"loss":{:.5f},"policy_loss":{:.5f},"value_loss":{:.5f},"top1":{:.5f},"lr":{:.3e},"positions_per_second":{:.1f}}})",
      p.step, p.positions, p.loss, p.policy, p.value, p.top1, p.lr, p.positions_per_second);
}

std::string to_json(const ValPoint& p) {
  return fmt::format(
      R"({{"step":{:.0f},"positions":{:.0f},"val_top1":{:.5f},"val_top3":{:.5f},"val_nll":{:.5f},"val_value_mse":{:.5f}}})",
      p.step, p.positions, p.top1, p.top3, p.nll, p.value_mse);
}

Expected<void> RunLog::append(const std::filesystem::path& run, const std::string& json) {
  std::ofstream out(run / "log.jsonl", std::ios::app);
  out << json << '\n';
  out.close();
  if (!out) return fail("train: cannot write {}", (run / "log.jsonl").string());
  return {};
}

Expected<void> RunLog::draw(const std::filesystem::path& run) const {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + 24, 2 * kHeight + 3 * kGap);
  svg += panel({{"#9ecae1", "training", column(train, &TrainPoint::policy)},
                {"#08519c", "held out", column(val, &ValPoint::nll)}},
               kGap, "cross-entropy of the move played, nats");
  svg += panel({{"#fdae6b", "training", column(train, &TrainPoint::top1, 100)},
                {"#a63603", "held out", column(val, &ValPoint::top1, 100)}},
               2 * kGap + kHeight, "moves guessed first, %");
  svg += "</svg>\n";
  const auto temporary = run / "curves.svg.new";
  std::ofstream out(temporary);
  out << svg;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, run / "curves.svg", error);
  if (!out || error) return fail("train: cannot write {}", (run / "curves.svg").string());
  return {};
}

}  // namespace tahl::learn
