#include "syntax/print.h"

#include "support/escape.h"
#include "support/format.h"

namespace kiln::ast {

namespace {

// Puts the parts of one node together: `(word part part)`, leaving out what was not written.
class Form {
 public:
  explicit Form(std::string_view word) : text_("(" + std::string(word)) {}

  Form& add(std::string_view part) {
    if (!part.empty()) text_ += " " + std::string(part);
    return *this;
  }
  Form& flag(bool set, std::string_view word) { return set ? add(word) : *this; }
  Form& name(const Name& name) { return add(name.text); }
  // `key:part`, for what is optional.
  Form& keyed(std::string_view key, std::string_view part) {
    return part.empty() ? *this : add(std::string(key) + ":" + std::string(part));
  }
  [[nodiscard]] std::string end() const { return text_ + ")"; }

 private:
  std::string text_;
};

std::string quoted(std::string_view text) {
  return format("\"{}\"", escape_for(Medium::kString, text));
}

std::string type_name(const Type& type) {
  return type.name.empty() ? std::string(kiln::name(type.dtype)) : type.name;
}
std::string type_name(const std::optional<Type>& type) {
  return type ? type_name(*type) : std::string();
}

std::string names_text(const std::vector<Name>& names) {
  return "{" + join(names, " ", [](const Name& name) { return name.text; }) + "}";
}

class Printer {
 public:
  explicit Printer(const Ast& tree) : tree_(tree) {}

  std::string expr(ExprId id) const {
    if (!id.valid()) return "-";
    return kiln::visit([&](const auto& node) { return show(node); }, tree_[id].node);
  }
  std::string stmt(StmtId id) const {
    if (!id.valid()) return "-";
    return kiln::visit([&](const auto& node) { return show(node); }, tree_[id].node);
  }
  std::string region(const Region& region) const {
    return std::visit([&](const auto& node) { return show(node); }, region);
  }

 private:
  // The expression, or nothing when it was not written.
  std::string optional(ExprId id) const { return id.valid() ? expr(id) : std::string(); }
  std::string exprs(const std::vector<ExprId>& ids) const {
    return join(ids, " ", [&](ExprId id) { return expr(id); });
  }
  std::string list(const std::vector<ExprId>& ids) const { return "[" + exprs(ids) + "]"; }
  std::string some(const std::vector<ExprId>& ids) const {
    return ids.empty() ? std::string() : list(ids);
  }
  std::string frag(const FragRef& ref) const {
    std::string out = ref.name.text;
    for (const ExprId id : ref.subscripts) out += "[" + expr(id) + "]";
    return out;
  }
  std::string declarator(const Declarator& d) const {
    std::string out = d.name.text;
    for (const ExprId id : d.extents) out += "[" + expr(id) + "]";
    if (d.init.valid()) out += d.braces ? "{" + expr(d.init) + "}" : "=" + expr(d.init);
    return out;
  }
  std::string declarators(const std::vector<Declarator>& all) const {
    return join(all, " ", [&](const Declarator& d) { return declarator(d); });
  }

  // ---- Expressions ----
  std::string show(const ErrorExpr&) const { return "(error)"; }
  std::string show(const IntExpr& e) const {
    return format("{}{}", e.value, e.type == DType::kS32 ? "" : ":" + std::string(name(e.type)));
  }
  std::string show(const FloatExpr& e) const {
    const bool plain = e.type.name.empty();
    if (plain && e.type.dtype == DType::kF32) return format("{}f", e.value);
    return plain && e.type.dtype == DType::kF64 ? format("{}d", e.value)
                                                : format("{}:{}", e.value, type_name(e.type));
  }
  std::string show(const BoolExpr& e) const { return e.value ? "true" : "false"; }
  std::string show(const NullptrExpr&) const { return "nullptr"; }
  std::string show(const StringExpr& e) const { return quoted(e.value); }
  std::string show(const WildcardExpr&) const { return "_"; }
  std::string show(const NameExpr& e) const { return e.name; }
  std::string show(const TypeExpr& e) const { return type_name(e.type); }
  std::string show(const UnaryExpr& e) const {
    const bool post = e.op == UnaryOp::kPostIncrement || e.op == UnaryOp::kPostDecrement;
    return Form((post ? "post" : "") + std::string(spelling(e.op))).add(expr(e.operand)).end();
  }
  std::string show(const BinaryExpr& e) const {
    // A chain of operations is deep on the left side only.
    std::string opened = "(" + std::string(spelling(e.op)) + " ";
    std::string closed = " " + expr(e.right) + ")";
    ExprId first = e.left;
    std::vector<std::string> rights;
    while (const auto* inner = tree_.as<BinaryExpr>(first)) {
      opened += "(" + std::string(spelling(inner->op)) + " ";
      rights.push_back(" " + expr(inner->right) + ")");
      first = inner->left;
    }
    opened += expr(first);
    for (; !rights.empty(); rights.pop_back()) opened += rights.back();
    return opened + closed;
  }
  std::string show(const ConditionalExpr& e) const {
    return Form("?").add(expr(e.condition)).add(expr(e.then_value)).add(expr(e.else_value)).end();
  }
  std::string show(const MemberExpr& e) const {
    return expr(e.base) + "." + std::string(spelling(e.member));
  }
  std::string show(const AtExpr& e) const {
    const std::string base =
        e.block.empty() ? expr(e.base) : Form("block").add(expr(e.base)).add(exprs(e.block)).end();
    return Form("at").add(base).add(exprs(e.indices)).end();
  }
  std::string show(const ElementExpr& e) const {
    return Form("elem").add(expr(e.base)).add(exprs(e.indices)).end();
  }
  std::string show(const SubscriptExpr& e) const {
    return Form(e.braces ? "derive" : "sub").add(expr(e.base)).add(exprs(e.items)).end();
  }
  std::string show(const DerivedIndexExpr& e) const { return "<" + expr(e.index) + ">"; }
  std::string view_op(const ViewOp& op) const {
    std::string out(spelling(op.kind));
    if (op.map_storage != Storage::kNone) out += "<" + std::string(spelling(op.map_storage)) + ">";
    out += "(" + exprs(op.args);
    if (!op.strides.empty()) out += " : " + exprs(op.strides);
    out += ")";
    if (op.steps_span.valid()) out += ".step(" + exprs(op.steps) + ")";
    const char* word = op.kind == ViewOpKind::kView ? ".from(" : ".at(";
    if (op.origin_span.valid()) out += word + exprs(op.origin) + ")";
    return out;
  }
  std::string show(const ViewExpr& e) const {
    const std::string ops = join(e.ops, " ", [&](const ViewOp& op) { return view_op(op); });
    return Form("view").add(expr(e.base)).add(ops).end();
  }
  std::string show(const ShapeExpr& e) const { return list(e.items); }
  std::string show(const TupleExpr& e) const { return "{" + exprs(e.items) + "}"; }
  std::string show(const MeasureExpr& e) const { return "|" + expr(e.operand) + "|"; }
  std::string show(const CastExpr& e) const {
    return Form(e.keeps_bits ? "bitcast" : "to")
        .add(e.type ? type_name(e.type) : quoted(e.cpp_type))
        .add(expr(e.operand))
        .end();
  }
  std::string show(const CallExpr& e) const { return Form(e.name.text).add(exprs(e.args)).end(); }
  std::string show(const DeviceCallExpr& e) const {
    return Form("call")
        .name(e.name)
        .keyed("template", some(e.template_args))
        .add(exprs(e.args))
        .end();
  }
  std::string show(const FunctionCallExpr& e) const {
    return Form("function")
        .name(e.name)
        .keyed("template", some(e.template_args))
        .add(exprs(e.args))
        .end();
  }
  std::string show(const FragFillExpr& e) const {
    return Form("frag.fill").add(type_name(e.type)).add(list(e.shape)).add(expr(e.value)).end();
  }
  std::string show(const FragLoadExpr& e) const {
    return Form("frag.load").add(expr(e.source)).end();
  }
  std::string show(const SelectExpr& e) const {
    return Form("select").add(expr(e.index)).add(exprs(e.choices)).end();
  }

  // ---- Declarations and simple statements ----
  std::string show(const ErrorStmt&) const { return "(error)"; }
  std::string show(const EmptyStmt&) const { return "(empty)"; }
  std::string show(const BlockStmt& s) const {
    return Form("block").add(join(s.body, " ", [&](StmtId id) { return stmt(id); })).end();
  }
  std::string show(const ScalarDeclStmt& s) const {
    return Form("scalar")
        .flag(s.is_mutable, "mutable")
        .add(spelling(s.storage))
        .add(s.is_int ? "int" : type_name(s.type))
        .add(declarators(s.declarators))
        .end();
  }
  std::string show(const ConstantStmt& s) const {
    Form form = Form("constexpr").add(kind(s.kind));
    for (const ConstantStmt::Item& item : s.items) form.name(item.name).add(expr(item.value));
    return form.end();
  }
  static std::string_view kind(ConstantStmt::Kind kind) {
    if (kind == ConstantStmt::Kind::kType) return "type";
    return kind == ConstantStmt::Kind::kBool ? "bool" : "int";
  }
  std::string show(const MdspanDeclStmt& s) const {
    return Form("mdspan").keyed("rank", optional(s.rank)).name(s.name).add(expr(s.shape)).end();
  }
  std::string show(const ItupleDeclStmt& s) const {
    return Form("ituple").keyed("rank", optional(s.rank)).name(s.name).add(expr(s.value)).end();
  }
  std::string show(const BufferDeclStmt& s) const {
    return Form("buffer")
        .add(spelling(s.storage))
        .add(type_name(s.type))
        .add(list(s.shape))
        .add(declarators(s.declarators))
        .end();
  }
  std::string show(const FragDeclStmt& s) const {
    return Form("frag")
        .flag(s.accumulator, "acc")
        .add(type_name(s.type))
        .add(some(s.shape))
        .add(declarators(s.declarators))
        .end();
  }
  std::string show(const EventDeclStmt& s) const {
    const auto item = [&](const EventDeclStmt::Item& item) {
      return declarator(item.declarator) + (item.ready ? "=ready" : "");
    };
    return Form("event")
        .add(spelling(s.storage))
        .keyed("threads", optional(s.threads))
        .add(join(s.items, " ", item))
        .end();
  }
  std::string show(const AssignStmt& s) const {
    return Form(spelling(s.op)).add(expr(s.target)).add(expr(s.value)).end();
  }
  std::string show(const ExprStmt& s) const { return Form("expr").add(expr(s.value)).end(); }
  std::string show(const RotateStmt& s) const {
    return Form(s.is_swap ? "swap" : "rotate").add(names_text(s.names)).end();
  }
  std::string show(const ReturnStmt& s) const {
    return Form("return").add(optional(s.value)).end();
  }
  std::string show(const SyncStmt& s) const {
    return Form("sync")
        .add(spelling(s.kind))
        .add(s.level ? spelling(*s.level) : std::string_view())
        .add(spelling(s.storage))
        .end();
  }
  std::string show(const CallStmt& s) const { return expr(s.call); }
  std::string show(const CppStmt& s) const { return Form("cpp").add(quoted(s.text)).end(); }
  std::string operands(const std::vector<AsmOperand>& all) const {
    return "[" +
           join(all, " ",
                [&](const AsmOperand& o) {
                  return Form(o.name.text).add(quoted(o.constraint)).add(expr(o.value)).end();
                }) +
           "]";
  }
  std::string show(const AsmStmt& s) const {
    const auto clobber = [](const std::string& text) { return quoted(text); };
    return Form("asm")
        .flag(s.is_volatile, "volatile")
        .add(quoted(s.text))
        .add(operands(s.outputs))
        .add(operands(s.inputs))
        .add("[" + join(s.clobbers, " ", clobber) + "]")
        .end();
  }
  std::string show(const ExpectStmt& s) const {
    return Form("expect")
        .add(s.body.valid() ? stmt(s.body) : expr(s.value))
        .add(stmt(s.statement))
        .end();
  }
  std::string show(const AssertStmt& s) const {
    return Form("assert").add(expr(s.condition)).add(quoted(s.message)).end();
  }
  std::string show(const PrintStmt& s) const {
    return Form(s.newline ? "println" : "print").flag(s.compile_time, "!").add(exprs(s.args)).end();
  }
  std::string show(const PragmaStmt& s) const {
    return Form("pragma")
        .add(s.kind == PragmaStmt::Kind::kPrefix ? "prefix" : "namespace")
        .name(s.name)
        .end();
  }

  // ---- Movement, tensor cores, events ----
  std::string swizzle(const std::optional<Swizzle>& swizzle) const {
    return swizzle ? expr(swizzle->bytes) : std::string();
  }
  std::string pad(const std::optional<PadConfig>& pad) const {
    if (!pad) return "";
    return list(pad->low) + list(pad->high) + list(pad->middle) + expr(pad->value);
  }
  std::string show(const MoveStmt& s) const {
    const bool counted = s.sparse && s.sparse->kept.valid();
    return Form(format("{}.{}", spelling(s.engine), spelling(s.op)))
        .keyed("handle", s.handle.text)
        .keyed("pad", pad(s.pad))
        .keyed("perm", some(s.permutation))
        .flag(s.is_async, "async")
        .keyed("event", optional(s.event))
        .keyed("swiz", swizzle(s.swizzle))
        .flag(s.zfill, "zfill")
        .flag(s.sparse.has_value(), "sp")
        .keyed("kept", counted ? expr(s.sparse->kept) + "/" + expr(s.sparse->of) : std::string())
        .keyed("promote", optional(s.promote))
        .flag(s.multicast, "multicast")
        .flag(s.adds, "add")
        .add(spelling(s.eviction))
        .add(expr(s.source))
        .add(s.target_storage == Storage::kNone ? expr(s.target)
                                                : std::string(spelling(s.target_storage)))
        .keyed("after", s.after.text)
        .end();
  }
  std::string show(const PlaceholderStmt& s) const {
    return Form(format("{}.any", spelling(s.engine))).name(s.name).end();
  }
  std::string show(const MmaFillStmt& s) const {
    return Form("mma.fill")
        .flag(s.declares, "new")
        .add(type_name(s.type))
        .add(frag(s.target))
        .add(expr(s.value))
        .add(some(s.extents))
        .end();
  }
  std::string show(const MmaLoadStmt& s) const {
    return Form("mma.load")
        .flag(s.declares, "new")
        .flag(s.to_registers, "frag")
        .keyed("swiz", swizzle(s.swizzle))
        .flag(s.is_async, "async")
        .add(frag(s.target))
        .add(expr(s.source))
        .end();
  }
  std::string show(const MmaExecStmt& s) const {
    return Form("mma")
        .add(attributes(s.attributes))
        .keyed("future", s.future.text)
        .add(spelling(s.a_major))
        .add(spelling(s.b_major))
        .flag(s.sparse, "sp")
        .flag(s.scaled, "scale")
        .flag(s.is_async, "async")
        .add(frag(s.acc))
        .add(expr(s.a))
        .add(expr(s.b))
        .keyed("meta", optional(s.metadata))
        .add(optional(s.a_scale))
        .add(optional(s.b_scale))
        .end();
  }
  std::string show(const MmaScaleStmt& s) const {
    return Form("mma.scale")
        .add(frag(s.acc))
        .add(s.source ? frag(*s.source) : "")
        .add(expr(s.a_scale))
        .add(expr(s.b_scale))
        .end();
  }
  std::string show(const MmaStoreStmt& s) const {
    return Form("mma.store")
        .flag(s.transp, "transp")
        .flag(s.is_async, "async")
        .flag(s.masked, "mask")
        .add(s.part.valid() ? expr(s.part) : frag(s.acc))
        .add(expr(s.target))
        .add(optional(s.rows))
        .add(optional(s.cols))
        .end();
  }
  std::string show(const MmaCommitStmt&) const { return "(mma.commit)"; }
  std::string show(const MmaWaitStmt& s) const {
    return Form("mma.wait").add(expr(s.groups)).end();
  }
  std::string show(const ApplyStmt& s) const {
    return Form("apply").add(names_text(s.names)).add(frag(s.anchor)).add(stmt(s.body)).end();
  }
  std::string show(const FragStoreStmt& s) const {
    return Form("frag.store").add(expr(s.value)).add(expr(s.target)).end();
  }
  std::string show(const ReduceStmt& s) const {
    return Form(spelling(s.op))
        .add(frag(s.target))
        .add(frag(s.source))
        .add(expr(s.dimension))
        .end();
  }
  std::string show(const AllReduceStmt& s) const {
    return Form("all_reduce_sum").add(frag(s.operand)).end();
  }
  std::string show(const FragCopyStmt& s) const {
    return Form("copy").add(frag(s.target)).add(frag(s.source)).end();
  }
  std::string show(const WaitStmt& s) const { return Form("wait").add(exprs(s.refs)).end(); }
  std::string show(const TriggerStmt& s) const {
    return Form("trigger")
        .flag(s.cluster, "cluster")
        .add(exprs(s.refs))
        .keyed("after", s.after.empty() ? std::string() : names_text(s.after))
        .end();
  }

  // ---- Statements with a body ----
  std::string attributes(const std::vector<Attribute>& all) const {
    return join(all, " ", [&](const Attribute& a) {
      return "[[" + std::string(spelling(a.kind)) + list(a.args) + "]]";
    });
  }
  std::string group(const ParallelGroup& g) const {
    const std::string level = g.level ? std::string(spelling(*g.level)) : std::string();
    return Form("by")
        .name(g.tuple)
        .add(g.names.empty() ? std::string() : names_text(g.names))
        .add(g.brackets ? list(g.bounds) : exprs(g.bounds))
        .keyed("level", level)
        .keyed("on", g.level_argument.text)
        .flag(g.cooperative, "cooperative")
        .end();
  }
  std::string show(const ParallelStmt& s) const {
    return Form("parallel")
        .add(attributes(s.attributes))
        .flag(s.is_async, "async")
        .keyed("stream", s.stream.text)
        .add(join(s.groups, " ", [&](const ParallelGroup& g) { return group(g); }))
        .add(stmt(s.body))
        .end();
  }
  std::string item(const WithItem& i) const {
    return Form("in")
        .name(i.name)
        .add(i.elements.empty() ? std::string() : names_text(i.elements))
        .add(expr(i.bounds))
        .end();
  }
  std::string item(const ForeachItem& i) const {
    if (i.declares) return item(*i.declares);
    if (!i.ranged) return Form("over").name(i.local).name(i.variable).end();
    return Form("over")
        .name(i.local)
        .name(i.variable)
        .add(expr(i.low))
        .add(expr(i.high))
        .add(expr(i.step))
        .end();
  }
  std::string show(const WithStmt& s) const {
    const auto tie = [](const Tie& t) { return t.left.text + "<->" + t.right.text; };
    return Form("with")
        .add(join(s.items, " ", [&](const WithItem& i) { return item(i); }))
        .add(join(s.ties, " ", tie))
        .add(stmt(s.body))
        .end();
  }
  std::string show(const ForeachStmt& s) const {
    const auto suffix = [&](const LoopSuffix& x) {
      const bool unroll = x.kind == LoopSuffix::Kind::kUnroll;
      return Form(unroll ? "unroll" : "vectorize").name(x.variable).add(optional(x.factor)).end();
    };
    return Form("foreach")
        .add(attributes(s.attributes))
        .add(join(s.items, " ", [&](const ForeachItem& i) { return item(i); }))
        .add(join(s.suffixes, " ", suffix))
        .add(stmt(s.body))
        .end();
  }
  std::string show(const WhileStmt& s) const {
    return Form("while").add(expr(s.condition)).add(stmt(s.body)).end();
  }
  std::string show(const IfStmt& s) const {
    return Form(s.is_constexpr ? "if constexpr" : "if")
        .add(expr(s.condition))
        .add(stmt(s.then_body))
        .add(s.else_body.valid() ? stmt(s.else_body) : std::string())
        .end();
  }
  std::string show(const InthreadsStmt& s) const {
    return Form("inthreads")
        .flag(s.is_async, "async")
        .add(expr(s.condition))
        .add(stmt(s.body))
        .end();
  }
  std::string show(const BreakStmt&) const { return "(break)"; }
  std::string show(const ContinueStmt&) const { return "(continue)"; }
  std::string show(const YieldStmt&) const { return "(yield)"; }

  // ---- Regions ----
  std::string dim(const Dim& d) const {
    if (d.kind == Dim::Kind::kAnonymous) return "?";
    return d.kind == Dim::Kind::kUnbounded ? "??" : expr(d.value);
  }
  std::string shape(const ShapeDecl& s) const {
    if (s.mdspan_rank.valid()) return "mdspan<" + expr(s.mdspan_rank) + ">";
    return "[" + join(s.dims, " ", [&](const Dim& d) { return dim(d); }) + "]";
  }
  std::string param(const Param& p) const {
    const std::string type = p.type.is_int ? "int" : type_name(p.type.dtype);
    std::string name = p.name.text;
    for (const ExprId extent : p.extents) name += "[" + expr(extent) + "]";
    return Form("param")
        .keyed("if", optional(p.condition))
        .add(spelling(p.storage))
        .flag(p.type.kind == ParamType::Kind::kFragment, "frag")
        .flag(p.type.kind == ParamType::Kind::kEvent, "event")
        .add(p.type.kind == ParamType::Kind::kStream ? "stream" : type)
        .add(p.type.shape ? shape(*p.type.shape) : std::string())
        .flag(p.reference, "&")
        .add(name)
        .end();
  }
  std::string templ(const Template& t) const {
    if (t.params.empty()) return "";
    const auto param = [&](const TemplateParam& p) {
      return Form(kind(p.kind))
          .name(p.name)
          .keyed("default", optional(p.fallback))
          .keyed("bound", optional(p.bound))
          .keyed("tune", some(p.tune))
          .end();
    };
    return Form("template")
        .add(join(t.params, " ", param))
        .keyed("requires", optional(t.condition))
        .end();
  }
  std::string result(const ReturnType& r) const {
    if (r.kind == ReturnType::Kind::kVoid) return "void";
    if (r.kind == ReturnType::Kind::kAuto) return "auto";
    const std::string type = type_name(r.dtype);
    if (r.kind == ReturnType::Kind::kScalar) return type;
    return (r.kind == ReturnType::Kind::kFragment ? "frag " : "") + type + shape(r.shape);
  }
  std::string show(const TileFunction& f) const {
    return Form(f.is_device ? "tile device" : "tile")
        .add(templ(f.templ))
        .add(result(f.result))
        .name(f.name)
        .add(join(f.params, " ", [&](const Param& p) { return param(p); }))
        .add(stmt(f.body))
        .end();
  }
  std::string show(const Constant& c) const { return stmt(c.statement); }
  std::string show(const HostText&) const { return "(host)"; }
  std::string show(const DeviceText&) const { return "(device)"; }
  std::string show(const KernelBlock&) const { return "(kernel)"; }

  const Ast& tree_;
};

}  // namespace

std::string print(const Ast& tree, ExprId id) { return Printer(tree).expr(id); }
std::string print(const Ast& tree, StmtId id) { return Printer(tree).stmt(id); }
std::string print(const Ast& tree, const Region& region) { return Printer(tree).region(region); }

std::string print(const Ast& tree) {
  std::string out;
  for (const Region& region : tree.regions) out += print(tree, region) + "\n";
  return out;
}

}  // namespace kiln::ast
