#include "measure/bench_row.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/format.h"
#include "support/json.h"

namespace kiln::measure {

namespace {

using Json = nlohmann::ordered_json;

// Every key once: `row` is a BenchRow, const or not, and `visit(key, field)` reads or writes.
template <class Row, class Visit>
void each_field(Row& row, Visit&& visit) {
  visit("suite", row.suite);
  visit("kernel", row.kernel);
  visit("m", row.m);
  visit("n", row.n);
  visit("k", row.k);
  visit("shape", row.shape);
  visit("types", row.types);
  visit("flops", row.flops);
  visit("bytes", row.bytes);
  visit("tflops", row.tflops);
  visit("baseline_tflops", row.baseline_tflops);
  visit("ratio", row.ratio);
  visit("spread", row.spread);
  visit("baseline", row.baseline);
  visit("baseline_seconds", row.baseline_seconds);
  visit("baseline_sums", row.baseline_sums);
  visit("dense_baseline", row.dense_baseline);
  visit("dense_ratio", row.dense_ratio);
  visit("seconds", row.seconds);
  visit("repeats", row.repeats);
  visit("defines", row.defines);
  visit("compile_seconds", row.compile_seconds);
  visit("warm_load_seconds", row.warm_load_seconds);
  visit("worst", row.worst);
  visit("sm_mhz", row.sm_mhz);
  visit("power_watt", row.power_watt);
  visit("graphs", row.graphs);
  visit("joules", row.joules);
  visit("baseline_joules", row.baseline_joules);
  visit("joules_per_tflop", row.joules_per_tflop);
  visit("baseline_joules_per_tflop", row.baseline_joules_per_tflop);
  visit("energy_source", row.energy_source);
  visit("arch", row.machine.arch);
  visit("device", row.machine.device);
  visit("clock_mhz", row.machine.clock_mhz);
  visit("driver", row.machine.driver);
  visit("toolkit", row.machine.toolkit);
  visit("version", row.machine.version);
  visit("commit", row.machine.commit);
}

Json json_of(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }
Json json_of(const std::map<std::string, std::string>& value) { return value; }
template <class Number>
Json json_of(const Number& value) {
  return value;
}
template <class Number>
Json json_of(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

double gigabytes_a_second(std::int64_t bytes, double seconds) {
  return 1e-9 * static_cast<double>(bytes) / seconds;
}

// A value of another type than the field's is as good as none.
void read(const Json& json, std::string& to) {
  if (json.is_string()) to = json.get<std::string>();
}
void read(const Json& json, bool& to) {
  if (json.is_boolean()) to = json.get<bool>();
}
void read(const Json& json, std::map<std::string, std::string>& to) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    to[key] = value.is_string() ? value.get<std::string>() : json_text(value);
  }
}
template <class Number>
void read(const Json& json, Number& to) {
  if (json.is_number()) to = json.get<Number>();
}
template <class Number>
void read(const Json& json, std::optional<Number>& to) {
  if (json.is_number()) to = json.get<Number>();
}

}  // namespace

std::string to_json(const BenchRow& row) {
  Json out;
  each_field(row, [&](const char* key, const auto& field) { out[key] = json_of(field); });
  return json_text(out) + "\n";
}

Result<std::vector<BenchRow>> parse_rows(const std::string& text, const std::string& file_name) {
  std::vector<BenchRow> rows;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("suite")) {
      return Unexpected{Error{"cannot read results", file_name,
                              format("line {} is no line of `kiln bench --json`", number)}};
    }
    BenchRow& row = rows.emplace_back();
    each_field(row, [&](const char* key, auto& field) {
      if (const auto found = json.find(key); found != json.end()) read(*found, field);
    });
  }
  return rows;
}

namespace {

// "  0.512 mJ, 1.870 J/TFLOP (cuBLASLt 13.1.0 0.530 mJ, 1.936)"; empty where nothing was measured.
std::string energy_text(const BenchRow& row) {
  if (!row.joules) return {};
  std::string text = format("  {:.3f} mJ", *row.joules * 1e3);
  if (row.joules_per_tflop) text += format(", {:.3f} J/TFLOP", *row.joules_per_tflop);
  if (!row.baseline_joules) return text;
  text += format(" ({} {:.3f} mJ", row.baseline, *row.baseline_joules * 1e3);
  if (row.baseline_joules_per_tflop) text += format(", {:.3f}", *row.baseline_joules_per_tflop);
  return text + ")";
}

}  // namespace

std::string to_text(const BenchRow& row) {
  std::string text = format("{:<28} {}  {:>10.2f} us", row.shape, row.types, row.seconds * 1e6);
  if (row.tflops) text += format("  {:>7.1f} TFLOP/s", *row.tflops);
  if (row.bytes) text += format("  {:>7.1f} GB/s", gigabytes_a_second(*row.bytes, row.seconds));
  if (row.bytes && row.baseline_seconds && row.ratio) {
    text += format("  {} {:>7.1f} GB/s  ratio {:.3f} (spread {:.3f})", row.baseline,
                   gigabytes_a_second(*row.bytes, *row.baseline_seconds), *row.ratio,
                   row.spread.value_or(0));
    return text + energy_text(row) + "\n";
  }
  if (row.ratio && row.baseline_tflops) {
    text += format("  {} {:>7.1f}  ratio {:.3f} (spread {:.3f})", row.baseline,
                   *row.baseline_tflops, *row.ratio, row.spread.value_or(0));
  }
  if (row.dense_ratio) text += format("  {:.3f} of dense", *row.dense_ratio);
  return text + energy_text(row) + "\n";
}

RowSummary summarise_rows(const std::vector<BenchRow>& rows) {
  RowSummary out;
  double logarithms = 0;
  for (const BenchRow& row : rows) {
    ++out.measured;
    if (!row.ratio || !(*row.ratio > 0)) continue;
    logarithms += std::log(*row.ratio);
    if (out.compared++ == 0 || *row.ratio < out.least) {
      out.least = *row.ratio;
      out.least_shape = row.shape;
    }
  }
  if (out.compared > 0) {
    out.geometric_mean = std::exp(logarithms / static_cast<double>(out.compared));
  }
  return out;
}

std::string to_text(const std::string& suite, const RowSummary& summary) {
  std::string text =
      format("{}: {} problem{}", suite, summary.measured, summary.measured == 1 ? "" : "s");
  if (summary.compared == 0) return text + ", none with a baseline\n";
  if (summary.compared < summary.measured) text += format(", {} compared", summary.compared);
  return text + format(", geometric mean {:.3f}, least {:.3f} ({})\n", summary.geometric_mean,
                       summary.least, summary.least_shape);
}

std::optional<double> tflops_of(const BenchRow& row, double seconds) {
  if (row.flops) return 1e-12 * *row.flops / seconds;
  if (!row.m || !row.n || !row.k) return std::nullopt;
  return 2e-12 * static_cast<double>(*row.m) * static_cast<double>(*row.n) *
         static_cast<double>(*row.k) / seconds;
}

}  // namespace kiln::measure
