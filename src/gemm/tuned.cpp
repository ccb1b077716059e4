#include "gemm/tuned.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <tuple>

#include "gemm/kernel_files.h"
#include "gemm/kernel_row.h"
#include "support/format.h"
#include "support/json.h"

namespace kiln::gemm {

namespace {

using Json = nlohmann::ordered_json;

// Reads one table; the first mistake is kept.
struct Reader {
  const std::string& name;
  std::string mistake = {};

  void wrong(std::string text) {
    if (mistake.empty()) mistake = std::move(text);
  }
  void only(const Json& object, const std::string& where,
            std::initializer_list<std::string_view> keys);
  std::string string_of(const Json& object, const char* key, const std::string& where);
  DType dtype_of(const Json& value, const std::string& where);
  Range range_of(const Json& entry, const char* key, const std::string& where);
  std::optional<Extents> at_of(const Json& entry, const std::string& where);
  bool flag_of(const Json& entry, const char* key, const std::string& where);
  void take_types(const Json& json, const std::string& where, TunedEntry& entry);
  void take_defines(const Json& json, const std::string& where, TunedEntry& entry);
  TunedEntry entry_of(const Json& json, const std::string& where);
  TunedTable table_of(const Json& json);
};

void Reader::only(const Json& object, const std::string& where,
                  std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(keys, key) == keys.end()) wrong(format("{}: no key `{}`", where, key));
  }
}

std::string Reader::string_of(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  wrong(format("{}: `{}` must be a string", where, key));
  return {};
}

DType Reader::dtype_of(const Json& value, const std::string& where) {
  const auto dtype = value.is_string() ? dtype_from_name(value.get<std::string>()) : std::nullopt;
  if (dtype) return *dtype;
  wrong(format("{}: no element type {}", where, json_text(value)));
  return DType::kBF16;
}

Range Reader::range_of(const Json& entry, const char* key, const std::string& where) {
  const auto found = entry.find(key);
  if (found == entry.end()) return {};
  const Json& value = *found;
  Range range;
  if (value.is_number_integer()) {
    range = {value.get<std::int64_t>(), value.get<std::int64_t>()};
  } else if (value.is_array() && value.size() == 2 && value[0].is_number_integer() &&
             value[1].is_number_integer()) {
    range = {value[0].get<std::int64_t>(), value[1].get<std::int64_t>()};
  } else {
    wrong(format("{}: `{}` must be a number or a pair of them", where, key));
  }
  if (range.from < 1 || range.to < range.from) {
    wrong(format("{}: `{}` goes from {} to {}", where, key, range.from, range.to));
  }
  return range;
}

std::optional<Extents> Reader::at_of(const Json& entry, const std::string& where) {
  const auto found = entry.find("at");
  if (found == entry.end()) return std::nullopt;
  const bool three =
      found->is_array() && found->size() == 3 && std::ranges::all_of(*found, [](const Json& each) {
        return each.is_number_integer() && each.get<std::int64_t>() >= 1;
      });
  if (three) return Extents{(*found)[0], (*found)[1], (*found)[2]};
  wrong(format("{}: `at` must be m, n and k", where));
  return std::nullopt;
}

bool Reader::flag_of(const Json& entry, const char* key, const std::string& where) {
  const auto found = entry.find(key);
  if (found == entry.end()) return true;
  if (!found->is_boolean()) wrong(format("{}: `{}` must be true or false", where, key));
  return found->is_boolean() && found->get<bool>();
}

void Reader::take_types(const Json& json, const std::string& where, TunedEntry& entry) {
  const auto types = json.find("types");
  if (types == json.end() || !types->is_array() || types->size() != 3) {
    wrong(format("{}: `types` must be those of A, B and C", where));
    return;
  }
  entry.a = dtype_of((*types)[0], where);
  entry.b = dtype_of((*types)[1], where);
  entry.c = dtype_of((*types)[2], where);
}

void Reader::take_defines(const Json& json, const std::string& where, TunedEntry& entry) {
  const auto defines = json.find("defines");
  if (defines == json.end()) return;
  if (!defines->is_object()) return wrong(format("{}: `defines` must be an object", where));
  for (const auto& [key, value] : defines->items()) {
    if (!value.is_string() && !value.is_number_integer()) {
      wrong(format("{}: `{}` must be a string or a whole number", where, key));
      continue;
    }
    entry.choice.defines.emplace_back(
        key, value.is_string() ? value.get<std::string>() : json_text(value));
  }
  std::ranges::sort(entry.choice.defines);
}

TunedEntry Reader::entry_of(const Json& json, const std::string& where) {
  TunedEntry entry;
  if (!json.is_object()) {
    wrong(format("{}: not an object", where));
    return entry;
  }
  only(json, where,
       {"types", "a_along_k", "b_along_k", "m", "n", "k", "at", "kernel", "defines", "seconds"});
  take_types(json, where, entry);
  entry.a_along_k = flag_of(json, "a_along_k", where);
  entry.b_along_k = flag_of(json, "b_along_k", where);
  entry.m = range_of(json, "m", where);
  entry.n = range_of(json, "n", where);
  entry.k = range_of(json, "k", where);
  entry.at = at_of(json, where);
  entry.choice.kernel = string_of(json, "kernel", where);
  take_defines(json, where, entry);
  const auto seconds = json.find("seconds");
  if (seconds == json.end()) return entry;
  if (!seconds->is_number()) wrong(format("{}: `seconds` must be a number", where));
  if (seconds->is_number()) entry.seconds = seconds->get<double>();
  return entry;
}

TunedTable Reader::table_of(const Json& json) {
  TunedTable table;
  if (!json.is_object()) {
    wrong("not a JSON object");
    return table;
  }
  only(json, "the table", {"format", "arch", "entries"});
  const auto version = json.find("format");
  if (version == json.end() || !version->is_number_integer() ||
      version->get<int>() != kTableFormat) {
    wrong(format("`format` must be {}", kTableFormat));
  }
  table.arch = string_of(json, "arch", "the table");
  if (target::find_arch(table.arch) == nullptr) {
    wrong(format("no architecture `{}`; there are {}", table.arch, target::arch_names()));
  }
  const auto entries = json.find("entries");
  if (entries == json.end() || !entries->is_array()) {
    wrong("`entries` must be an array");
    return table;
  }
  for (std::size_t i = 0; i < entries->size(); ++i) {
    table.entries.push_back(entry_of((*entries)[i], format("entry {}", i)));
  }
  return table;
}

int exact(const TunedEntry& entry) {
  int count = 0;
  for (const Range& range : {entry.m, entry.n, entry.k}) count += range.from == range.to ? 1 : 0;
  return count;
}

// Logarithm of how many problems the box holds.
double size(const TunedEntry& entry) {
  double log = 0;
  for (const Range& range : {entry.m, entry.n, entry.k}) {
    log += std::log2(static_cast<double>(range.to) - static_cast<double>(range.from) + 1);
  }
  return log;
}

Extents extents_of(const Problem& problem) { return {problem.m, problem.n, problem.k}; }

bool fits(const TunedEntry& entry, const Problem& problem) {
  if (entry.a != problem.a || entry.b != problem.b || entry.c != problem.c) return false;
  if (entry.a_along_k != problem.a_along_k || entry.b_along_k != problem.b_along_k) return false;
  if (problem.batch_invariant && !entry.m.is_any()) return false;
  return entry.m.contains(problem.m) && entry.n.contains(problem.n) && entry.k.contains(problem.k);
}

bool has_scales(const TunedEntry& entry) {
  const KernelRow* row = kernel_row(entry.choice.kernel);
  return row != nullptr && row->block_scales == Takes::kAlways;
}

// Entries that answer the same question; of those measured, at the same problem.
bool same_problem(const TunedEntry& left, const TunedEntry& right) {
  const auto types = [](const TunedEntry& e) {
    return std::tuple(e.a, e.b, e.c, e.a_along_k, e.b_along_k, e.at);
  };
  const auto box = [](const TunedEntry& e) { return std::tuple(e.m, e.n, e.k); };
  return types(left) == types(right) && (left.at || box(left) == box(right));
}

Json json_of(const std::string& define) {
  const bool digits = !define.empty() && define.size() < 10 && define[0] != '0' &&
                      define.find_first_not_of("0123456789") == std::string::npos;
  return digits ? Json(std::stoll(define)) : Json(define);
}

Json json_of(const TunedEntry& entry) {
  Json out;
  out["types"] = {kiln::name(entry.a), kiln::name(entry.b), kiln::name(entry.c)};
  if (!entry.a_along_k) out["a_along_k"] = false;
  if (!entry.b_along_k) out["b_along_k"] = false;
  for (const auto& [key, range] :
       {std::pair{"m", entry.m}, std::pair{"n", entry.n}, std::pair{"k", entry.k}}) {
    if (range.is_any()) continue;
    out[key] = range.from == range.to ? Json(range.from) : Json{range.from, range.to};
  }
  if (entry.at) out["at"] = {entry.at->m, entry.at->n, entry.at->k};
  out["kernel"] = entry.choice.kernel;
  out["defines"] = Json::object();
  for (const auto& [name, value] : entry.choice.defines) out["defines"][name] = json_of(value);
  if (entry.seconds > 0) out["seconds"] = entry.seconds;
  return out;
}

std::vector<TunedTable> read_shipped() {
  std::vector<TunedTable> tables;
  for (const target::Arch& arch : target::all_archs()) {
    const std::string name = format("tuned/{}.json", arch.name);
    const KernelFile* file = kernel_file(name);
    if (file == nullptr) continue;
    auto table = parse_table(file->text, name);
    KILN_CHECK(table.has_value(), "{}", table.error().text());
    tables.push_back(std::move(*table));
  }
  return tables;
}

}  // namespace

Result<TunedTable> parse_table(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Reader reader{.name = name};
  if (json.is_discarded()) reader.wrong("not JSON");
  TunedTable table;
  if (!json.is_discarded()) table = reader.table_of(json);
  if (reader.mistake.empty()) return table;
  return Unexpected{Error{"not a table of tuned kernels:", name, reader.mistake}};
}

std::string table_text(const TunedTable& table) {
  std::string out =
      format("{{\"format\": {}, \"arch\": \"{}\", \"entries\": [", kTableFormat, table.arch);
  const char* separator = "\n";
  for (const TunedEntry& entry : table.entries) {
    out += separator + json_text(json_of(entry));
    separator = ",\n";
  }
  return out + "\n]}\n";
}

std::vector<const TunedEntry*> fitting(const TunedTable& table, const Problem& problem) {
  std::vector<const TunedEntry*> out;
  if (problem.batch != 1 || problem.groups != 0) return out;
  for (const TunedEntry& entry : table.entries) {
    if (fits(entry, problem)) out.push_back(&entry);
  }
  const auto rank = [&](const TunedEntry* entry) {
    const bool elsewhere = entry->at != extents_of(problem);
    return std::tuple(elsewhere, -exact(*entry), size(*entry));
  };
  std::ranges::stable_sort(out, [&](const TunedEntry* left, const TunedEntry* right) {
    return rank(left) < rank(right);
  });
  return out;
}

void merge(TunedTable& table, TunedEntry entry) {
  const auto found = std::ranges::find_if(table.entries, [&](const TunedEntry& each) {
    return same_problem(each, entry) && has_scales(each) == has_scales(entry);
  });
  if (found == table.entries.end()) {
    table.entries.push_back(std::move(entry));
  } else {
    *found = std::move(entry);
  }
}

bool has_entry(const TunedTable& table, const Problem& problem) {
  TunedEntry exact{.a = problem.a,
                   .b = problem.b,
                   .c = problem.c,
                   .a_along_k = problem.a_along_k,
                   .b_along_k = problem.b_along_k,
                   .m = {problem.m, problem.m},
                   .n = {problem.n, problem.n},
                   .k = {problem.k, problem.k}};
  TunedEntry measured = exact;
  measured.at = extents_of(problem);
  return std::ranges::any_of(table.entries, [&](const TunedEntry& each) {
    return (same_problem(each, exact) || same_problem(each, measured)) &&
           has_scales(each) == problem.block_scales;
  });
}

const TunedTable* shipped_table(const target::Arch& arch) {
  static const std::vector<TunedTable> tables = read_shipped();
  const auto found = std::ranges::find(tables, arch.name, &TunedTable::arch);
  return found == tables.end() ? nullptr : &*found;
}

}  // namespace kiln::gemm
