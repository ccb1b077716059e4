#include "driver/dump.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "ir/printed.h"
#include "ir/reflect.h"
#include "support/format.h"
#include "support/parse_number.h"

namespace kiln::driver {

namespace {

constexpr const char* kForm = "TILE@LINE or TILE@LINE[ROW:ROW,COLUMN:COLUMN]";

// "8:16"; false when it is none.
bool read_range(std::string_view text, std::int64_t& begin, std::int64_t& end) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return false;
  const auto from = parse_number<std::int64_t>(text.substr(0, colon));
  const auto to = parse_number<std::int64_t>(text.substr(colon + 1));
  if (!from || !to || *from < 0 || *to <= *from) return false;
  begin = *from;
  end = *to;
  return true;
}

bool read_part(std::string_view text, DumpPart& part) {
  const std::size_t comma = text.find(',');
  if (comma == text.npos || !text.ends_with(']')) return false;
  return read_range(text.substr(0, comma), part.row, part.row_end) &&
         read_range(text.substr(comma + 1, text.size() - comma - 2), part.column, part.column_end);
}

bool read_request(const std::string& text, DumpRequest& request) {
  request.text = text;
  const std::size_t at = text.find('@');
  if (at == 0 || at == text.npos) return false;
  request.tile = text.substr(0, at);
  const std::size_t bracket = text.find('[', at);
  const auto line = parse_number<std::int64_t>(
      std::string_view(text).substr(at + 1, bracket == text.npos ? text.npos : bracket - at - 1));
  if (!line || *line < 1) return false;
  request.line = *line;
  return bracket == text.npos ||
         read_part(std::string_view(text).substr(bracket + 1), request.part);
}

// "acc_2" is `acc` too: the second value that the program calls so.
bool is_called(std::string_view name, std::string_view wanted) {
  if (!name.starts_with(wanted)) return false;
  name.remove_prefix(wanted.size());
  if (name.empty()) return true;
  return name.size() > 1 && name[0] == '_' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// What can be shown: buffers, register tiles and variables.
bool holds_something(const ir::Type& type) {
  const auto* frag = std::get_if<ir::FragType>(&type);
  if (frag != nullptr) return frag->role != ir::Role::kMetadata;
  return std::holds_alternative<ir::ViewType>(type) || std::holds_alternative<ir::CellType>(type);
}

// The operations of a function's kernels, in order, with their lines in the program's file.
struct Executed {
  ir::OpId op;
  std::int64_t line = 0;
};

// An operation inside of one of the same line, as those of a register tile's elements, is left to that one.
void add_executed(const io::Program& program, const ir::Function& function, ir::RegionId region,
                  const Place& around, std::vector<Executed>& out) {
  for (const ir::OpId id : function.regions[region].ops) {
    const ir::Op& op = function.ops[id];
    const Place place = op.span.valid() ? program.sources.place(op.span) : around;
    const bool is_own = place.file == around.file && place.line != around.line;
    if (is_own && op.span.valid()) out.push_back({id, place.line});
    for (const ir::RegionId inner : ir::regions_of(op)) {
      add_executed(program, function, inner, is_own ? place : around, out);
    }
  }
}

std::vector<Executed> executed(const io::Program& program, const ir::Function& function) {
  std::vector<Executed> out;
  const Place file{program.sources.place(function.span).file, 0, 0};
  for (const ir::OpId launch : function.regions[function.body].ops) {
    const auto* parallel = std::get_if<ir::Parallel>(&function.ops[launch].data);
    if (parallel != nullptr) add_executed(program, function, parallel->body, file, out);
  }
  return out;
}

// Whether the operation gives the value, or does something with it.
bool concerns(const ir::Function& function, ir::OpId id, ir::ValueId value) {
  if (function.ops[id].result == value) return true;
  bool found = false;
  ir::for_each_operand(function.ops[id], [&](std::string_view, ir::ValueId operand) {
    found = found || operand == value;
  });
  return found;
}

// The last operation of the line, one that is about the value if there is any.
std::optional<ir::OpId> last_of_line(const std::vector<Executed>& all, std::int64_t line,
                                     const std::function<bool(ir::OpId)>& preferred) {
  std::optional<ir::OpId> last;
  bool is_preferred = false;
  for (const Executed& at : all) {
    if (at.line != line) continue;
    const bool now = preferred(at.op);
    if (now || !is_preferred) last = at.op;
    is_preferred = is_preferred || now;
  }
  return last;
}

// A tile that an instruction reads from shared memory: no register holds it.
bool is_in_place(const ir::Function& function, ir::ValueId value) {
  return std::ranges::any_of(function.ops, [&](const ir::Op& op) {
    const auto* load = std::get_if<ir::Load>(&op.data);
    return load != nullptr && load->in_shared && load->frag == value;
  });
}

// The value of that name that is there behind the line: the last one given up to it, and its buffer
// rather than a tile that is read in place.
ir::ValueId value_called(const io::Program& program, const ir::Function& function,
                         const DumpRequest& request) {
  ir::ValueId found;
  std::pair<bool, std::int64_t> best = {false, -1};
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    const ir::ValueId id{v};
    const ir::Value& value = function.values[id];
    if (!is_called(value.name, request.tile) || !holds_something(value.type)) continue;
    const std::int64_t line = value.def.valid() && function.ops[value.def].span.valid()
                                  ? program.sources.place(function.ops[value.def].span).line
                                  : 0;
    const std::pair<bool, std::int64_t> rank = {!is_in_place(function, id), line};
    if (line > request.line || rank < best) continue;
    best = rank;
    found = id;
  }
  return found;
}

std::string names_at(const io::Program& program, const ir::Function& function,
                     const DumpRequest& request, std::vector<std::string>& names) {
  std::set<std::string> all;
  for (const ir::Value& value : function.values) {
    if (!holds_something(value.type) || value.name.empty()) continue;
    if (value.def.valid() && function.ops[value.def].span.valid() &&
        program.sources.place(function.ops[value.def].span).line > request.line)
      continue;
    if (std::isalpha(static_cast<unsigned char>(value.name[0])) != 0) all.insert(value.name);
  }
  names.assign(all.begin(), all.end());
  constexpr std::size_t kShown = 12;
  if (all.size() > kShown) names.resize(kShown);
  return join(names, ", ", [](const std::string& name) { return format("`{}`", name); });
}

Checked<sim::DumpPoint> point_of(const DumpRequest& request, const io::Program& program,
                                 const ir::Function& function, const std::vector<Executed>& all,
                                 Diagnostics& diags) {
  const ir::ValueId value = value_called(program, function, request);
  if (!value.valid()) {
    std::vector<std::string> names;
    const std::string there = names_at(program, function, request, names);
    auto report = diags.report<diag::DumpUnknown>({}, request.text, request.line, request.tile);
    std::string help = did_you_mean(request.tile, names);
    if (help.empty() && !there.empty()) help = format("there are {}", there);
    return std::move(report).help_if(std::move(help)).emit();
  }
  const auto op =
      last_of_line(all, request.line, [&](ir::OpId id) { return concerns(function, id, value); });
  if (!op) {
    std::int64_t next = 0;
    for (const Executed& at : all) {
      if (at.line > request.line && (next == 0 || at.line < next)) next = at.line;
    }
    return diags.report<diag::DumpLine>({}, request.text, request.line, function.name)
        .help_if(next == 0 ? "" : format("the next line that does is {}", next))
        .emit();
  }
  return sim::DumpPoint{value, *op};
}

// A table of `rows` lines, and its columns' numbers above it.
std::string table_text(const std::vector<std::string>& labels, std::int64_t first_column,
                       const std::vector<std::vector<std::string>>& cells) {
  std::size_t width = 6;
  std::size_t label_width = 6;
  for (const std::string& label : labels) label_width = std::max(label_width, label.size());
  for (const auto& row : cells) {
    for (const std::string& cell : row) width = std::max(width, cell.size());
  }
  std::string out = std::string(label_width, ' ');
  for (std::size_t c = 0; !cells.empty() && c < cells[0].size(); ++c) {
    out += format("  {:>{}}", first_column + static_cast<std::int64_t>(c), width);
  }
  out += '\n';
  for (std::size_t r = 0; r < cells.size(); ++r) {
    out += format("{:>{}}", labels[r], label_width);
    for (const std::string& cell : cells[r]) out += format("  {:>{}}", cell, width);
    out += '\n';
  }
  return out;
}

// A table of more or fewer dimensions than two as rows of its last one.
struct Rows {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

Rows rows_of(const sim::Dumped& dumped) {
  Rows out;
  for (std::size_t d = 0; d < dumped.shape.size(); ++d) {
    (d + 1 == dumped.shape.size() ? out.columns : out.rows) *= dumped.shape[d];
  }
  return out;
}

// "3", or "1, 3" of three dimensions.
std::string row_label(const sim::Dumped& dumped, std::int64_t row) {
  std::vector<std::int64_t> at;
  for (std::size_t d = dumped.shape.size(); d-- > 1;) {
    const std::int64_t extent = std::max<std::int64_t>(dumped.shape[d - 1], 1);
    at.insert(at.begin(), row % extent);
    row /= extent;
  }
  return at.empty() ? "0" : join(at, ", ", [](std::int64_t i) { return format("{}", i); });
}

std::string where_text(const sim::Dumped::Element& element) {
  if (element.thread < 0) return element.address < 0 ? "outside" : format("{}", element.address);
  const std::string number = element.number < 0 ? "" : format(".{}", element.number);
  const std::string more = element.holders > 1 ? format(" x{}", element.holders) : "";
  return format("{}{}{}", element.thread, number, more);
}

bool in_registers(const sim::Dumped& dumped) {
  return std::ranges::any_of(dumped.elements, [](const auto& e) { return e.thread >= 0; });
}

std::string shape_of(const sim::Dumped& dumped) {
  return format("[{}]", join(dumped.shape, ", ", [](std::int64_t n) { return format("{}", n); }));
}

std::string dump_text(const DumpRequest& request, const sim::Dumped& dumped) {
  const Rows all = rows_of(dumped);
  const std::int64_t row_end = std::min(request.part.row_end, all.rows);
  const std::int64_t column_end = std::min(request.part.column_end, all.columns);
  const bool registers = in_registers(dumped);
  std::string out = format("{} behind line {}: {} {} ", request.tile, request.line,
                           name(dumped.dtype), shape_of(dumped));
  out += registers ? format("in registers of threads {} to {}", dumped.first_thread,
                            dumped.first_thread + dumped.threads - 1)
                   : format("in memory, when the last of threads {} to {} is there",
                            dumped.first_thread, dumped.first_thread + dumped.threads - 1);
  const auto any = [&](auto member) { return std::ranges::any_of(dumped.elements, member); };
  if (any(&sim::Dumped::Element::in_flight)) out += "; ... is on its way";
  if (dumped.pending) out += "; a product that nobody has waited for still adds to it";
  out += '\n';
  std::vector<std::string> labels;
  std::vector<std::vector<std::string>> values;
  std::vector<std::vector<std::string>> places;
  for (std::int64_t r = request.part.row; r < row_end; ++r) {
    labels.push_back(row_label(dumped, r));
    values.emplace_back();
    places.emplace_back();
    for (std::int64_t c = request.part.column; c < column_end; ++c) {
      const auto& element = dumped.elements[static_cast<std::size_t>(r * all.columns + c)];
      values.back().push_back(value_text(dumped, element));
      places.back().push_back(where_text(element));
    }
  }
  if (values.empty() || values[0].empty()) return out + "  nothing lies in that part\n";
  out += table_text(labels, request.part.column, values);
  out += registers ? "held by thread.element\n" : "at byte\n";
  out += table_text(labels, request.part.column, places);
  const auto shown = static_cast<std::int64_t>(values.size() * values[0].size());
  if (shown < all.rows * all.columns) {
    out += format("{} of {} elements; {}@{}[{}:{},{}:{}] shows all\n", shown,
                  all.rows * all.columns, request.tile, request.line, 0, all.rows, 0, all.columns);
  }
  return out;
}

}  // namespace

Checked<std::vector<DumpRequest>> parse_dumps(const std::vector<std::string>& texts,
                                              Diagnostics& diags) {
  std::vector<DumpRequest> out;
  for (const std::string& text : texts) {
    if (read_request(text, out.emplace_back())) continue;
    return diags.report<diag::OptionForm>({}, "--dump", text, kForm)
        .help(
            "`--dump acc@31` shows `acc` behind line 31, `--dump acc@31[0:64,8:16]` all of its "
            "rows 0 to 63 and columns 8 to 15")
        .emit();
  }
  return out;
}

Checked<std::vector<sim::DumpPoint>> dump_points(const std::vector<DumpRequest>& requests,
                                                 const io::Program& program,
                                                 const ir::Function& function,
                                                 const backends::Backend& backend,
                                                 Diagnostics& diags) {
  std::vector<sim::DumpPoint> out;
  if (requests.empty()) return out;
  if (!backend.reports.tiles) {
    return diags.report<diag::DumpBackend>({}, requests[0].text, backend.name)
        .help("add `--on sim`")
        .emit();
  }
  const std::vector<Executed> all = executed(program, function);
  for (const DumpRequest& request : requests) {
    const auto point = point_of(request, program, function, all, diags);
    if (!point) return Unexpected{point.error()};
    out.push_back(*point);
  }
  return out;
}

std::string value_text(const sim::Dumped& dumped, const sim::Dumped::Element& element) {
  if (!element.known) return "-";
  if (element.in_flight) return "...";
  if (is_float(dumped.dtype)) return format("{:.6g}", element.value);
  return ir::printed(dumped.dtype, static_cast<std::int64_t>(element.value), 0);
}

std::string dumps_text(const std::vector<DumpRequest>& requests,
                       const std::vector<sim::Dumped>& dumped) {
  std::string out;
  for (const sim::Dumped& one : dumped) out += dump_text(requests[one.point], one);
  return out;
}

void warn_of_unreached(const std::vector<DumpRequest>& requests,
                       const std::vector<sim::Dumped>& dumped, Diagnostics& diags) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (std::ranges::find(dumped, i, &sim::Dumped::point) != dumped.end()) continue;
    diags.report<diag::DumpUnreached>({}, requests[i].text, requests[i].line)
        .help(
            "the first block of the grid is shown; of a tile that `mma` reads in place, show the "
            "buffer")
        .emit();
  }
}

}  // namespace kiln::driver
