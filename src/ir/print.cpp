#include "ir/print.h"

#include <vector>

#include "ir/names.h"
#include "ir/op_text.h"
#include "ir/reflect.h"
#include "layout/print.h"
#include "support/escape.h"

namespace kiln::ir {

namespace {

std::string quoted(std::string_view text) {
  return format("\"{}\"", escape_for(Medium::kIrString, text));
}

class Printer {
 public:
  explicit Printer(const Function& function) : function_(function) {}

  std::string function() {
    out_ += format("func @{}({}) {{\n", function_.name,
                   join(function_.params, ", ", [&](const Param& p) { return param(p); }));
    for (const Var& var : function_.vars) {
      out_ += format("  var {}: {}", var.name, name_of(var.kind));
      if (!var.extent.is(0)) out_ += format(" < {}", function_.text(var.extent));
      out_ += "\n";
    }
    for (const NamedIndex& named : function_.named) {
      out_ += format("  name {} = {}\n", named.name, function_.text(named.value));
    }
    for (const EntryCheck& check : function_.checks) {
      out_ += format("  check {} {} {} {}\n", function_.text(check.left), name_of(check.relation),
                     function_.text(check.right), quoted(check.message));
    }
    region(function_.body, 1);
    return std::move(out_) + "}\n";
  }

  // Result, mnemonic, attributes and type: all that comes before the regions.
  std::string head(OpId id) {
    const Op& op = function_.ops[id];
    std::string line;
    if (op.result.valid()) line = value(op.result) + " = ";
    line += mnemonic(op.kind());
    kiln::visit([&](const auto& data) { line += changed_attributes(data); }, op.data);
    if (op.result.valid()) line += " : " + type(function_.type(op.result));
    return line;
  }

 private:
  void region(RegionId id, int depth) {
    for (const OpId op : function_.regions[id].ops) {
      out_.append(static_cast<std::size_t>(depth) * 2, ' ');
      out_ += head(op);
      for_each_field(function_.ops[op], [&](std::string_view key, const auto& field) {
        inner_region(key, field, depth);
      });
      out_ += "\n";
    }
  }

  void inner_region(std::string_view key, RegionId id, int depth) {
    if (!id.valid()) return;
    out_ += format(" {}={{\n", key);
    region(id, depth + 1);
    out_.append(static_cast<std::size_t>(depth) * 2, ' ');
    out_ += "}";
  }
  void inner_region(std::string_view, const auto&, int) {}

  std::string param(const Param& p) const {
    std::string out;
    if (p.is_global) out += "global ";
    if (p.is_reference) out += "ref ";
    out += format("{}: {}", value(p.value), type(function_.type(p.value)));
    if (p.var.valid()) out += format(" as {}", function_.vars[p.var].name);
    return out;
  }

  std::string value(ValueId id) const { return "%" + function_.values[id].name; }

  std::string type(const Type& t) const {
    if (const auto* scalar = std::get_if<ScalarType>(&t)) return std::string(name(scalar->dtype));
    if (const auto* cell = std::get_if<CellType>(&t)) return format("cell<{}>", name(cell->dtype));
    if (const auto* view = std::get_if<ViewType>(&t)) {
      return format("view<{}, {}, {}>", name(view->dtype), name_of(view->space),
                    spell(view->shape));
    }
    if (const auto* frag = std::get_if<FragType>(&t)) {
      return format("frag<{}, {}, {}x{}>", name_of(frag->role), name(frag->dtype), frag->rows,
                    frag->cols);
    }
    if (const auto* event = std::get_if<EventType>(&t)) return format("event<{}>", event->slots);
    if (std::holds_alternative<FutureType>(t)) return "future";
    return "none";
  }

  // Enumerations whose first enumerator says nothing.
  template <class T>
  static constexpr bool is_quiet =
      std::is_same_v<T, CopyWay> || std::is_same_v<T, Eviction> || std::is_same_v<T, Arrival>;

  // Fields equal to those of a new operation are left out. Other enumerators are shown all the
  // same: a reader should not have to know that `add` is the first of its kind.
  template <class T>
  std::string changed_attributes(const T& data) const {
    T fresh;
    std::vector<std::string> before = attributes(fresh);
    std::size_t i = 0;
    T::fields(fresh, [&](std::string_view, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if (std::is_enum_v<Field> && !is_quiet<Field>) before[i].clear();
      ++i;
    });
    const std::vector<std::string> now = attributes(data);
    std::string out;
    for (std::size_t k = 0; k < now.size(); ++k) {
      if (now[k] == before[k]) continue;
      // A flag that is set of itself.
      out += now[k].empty() ? format("{}=false", before[k]) : now[k];
    }
    return out;
  }

  // " key=value" for each field but regions, which are printed after everything else.
  template <class T>
  std::vector<std::string> attributes(T& data) const {
    std::vector<std::string> out;
    T::fields(data, [&](std::string_view key, const auto& field) {
      out.push_back(attribute(key, field));
    });
    return out;
  }

  std::string attribute(std::string_view key, bool field) const {
    return field ? format(" {}", key) : "";
  }
  std::string attribute(std::string_view, RegionId) const { return ""; }
  std::string attribute(std::string_view key, const auto& field) const {
    return format(" {}={}", key, spell(field));
  }

  std::string spell(std::int64_t field) const { return format("{}", field); }
  std::string spell(double field) const { return format("{}", field); }
  std::string spell(const std::string& field) const { return quoted(field); }
  std::string spell(const Layout& field) const { return quoted(to_text(field)); }
  std::string spell(const Expr& field) const { return function_.text(field); }
  std::string spell(ValueId field) const { return field.valid() ? value(field) : "none"; }
  std::string spell(VarId field) const {
    return field.valid() ? function_.vars[field].name : "none";
  }
  template <class Row>
  std::string spell(const Row* field) const {
    return field == nullptr ? "none" : std::string(field->name);
  }
  template <class T>
  std::string spell(const std::vector<T>& field) const {
    return format("[{}]", join(field, ", ", [&](const T& item) { return spell(item); }));
  }
  template <class E>
  requires std::is_enum_v<E> std::string spell(E field)
  const { return std::string(name_of(field)); }

  const Function& function_;
  std::string out_;
};

}  // namespace

std::string print(const Function& function) { return Printer(function).function(); }

std::string op_text(const Function& function, OpId op) { return Printer(function).head(op); }

std::string print(const Module& module) {
  std::string out = "module";
  if (module.arch != nullptr) out += format(" arch={}", module.arch->name);
  out += format(" form={}", name_of(module.form));
  if (!module.after.empty()) out += format(" after={}", quoted(module.after));
  out += "\n";
  for (const CudaPart& part : module.cuda) out += format("\ncuda {}\n", quoted(part.text));
  for (const Function& function : module.functions) out += "\n" + print(function);
  return out;
}

}  // namespace kiln::ir
