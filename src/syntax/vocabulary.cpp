#include "syntax/vocabulary.h"

#include "support/check.h"

namespace kiln::ast {

namespace {

constexpr BuiltinInfo kBuiltins[] = {
#define KILN_BUILTIN(Name, text, args_min, args_max) {Builtin::k##Name, text, args_min, args_max},
#include "syntax/builtin.def"
#undef KILN_BUILTIN
};

}  // namespace

const BuiltinInfo* info(Builtin builtin) {
  if (builtin == Builtin::kNone) return nullptr;
  return &kBuiltins[static_cast<std::size_t>(builtin) - 1];
}

Builtin builtin_from_name(std::string_view name) {
  for (const BuiltinInfo& row : kBuiltins) {
    // Functions without a spelling are only parts of others.
    if (!row.name.empty() && row.name == name) return row.builtin;
  }
  return Builtin::kNone;
}

std::string_view spelling(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNot: return "!";
    case UnaryOp::kMinus: return "-";
    case UnaryOp::kPlus: return "+";
    case UnaryOp::kComplement: return "~";
    case UnaryOp::kBound: return "#";
    case UnaryOp::kAddress: return "&";
    case UnaryOp::kPreIncrement:
    case UnaryOp::kPostIncrement: return "++";
    case UnaryOp::kPreDecrement:
    case UnaryOp::kPostDecrement: return "--";
  }
  KILN_UNREACHABLE("unary operator {}", static_cast<int>(op));
}

std::string_view spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr: return "||";
    case BinaryOp::kAnd: return "&&";
    case BinaryOp::kEqual: return "==";
    case BinaryOp::kNotEqual: return "!=";
    case BinaryOp::kLess: return "<";
    case BinaryOp::kLessEqual: return "<=";
    case BinaryOp::kGreater: return ">";
    case BinaryOp::kGreaterEqual: return ">=";
    case BinaryOp::kShiftLeft: return "<<";
    case BinaryOp::kShiftRight: return ">>";
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSubtract: return "-";
    case BinaryOp::kMultiply: return "*";
    case BinaryOp::kDivide: return "/";
    case BinaryOp::kRemainder: return "%";
    case BinaryOp::kBoundSubtract: return "#-";
    case BinaryOp::kBoundAdd: return "#+";
    case BinaryOp::kBoundMultiply: return "#*";
    case BinaryOp::kBoundDivide: return "#/";
    case BinaryOp::kBoundRemainder: return "#%";
    case BinaryOp::kBitAnd: return "&";
    case BinaryOp::kBitOr: return "|";
    case BinaryOp::kBitXor: return "^";
    case BinaryOp::kCompose: return "#";
  }
  KILN_UNREACHABLE("binary operator {}", static_cast<int>(op));
}

std::string_view spelling(AssignOp op) {
  switch (op) {
    case AssignOp::kSet: return "=";
    case AssignOp::kAdd: return "+=";
    case AssignOp::kSubtract: return "-=";
    case AssignOp::kMultiply: return "*=";
    case AssignOp::kDivide: return "/=";
    case AssignOp::kRemainder: return "%=";
  }
  KILN_UNREACHABLE("assignment {}", static_cast<int>(op));
}

std::string_view spelling(Storage storage) {
  switch (storage) {
    case Storage::kNone: return "";
    case Storage::kGlobal: return "global";
    case Storage::kShared: return "shared";
    case Storage::kLocal: return "local";
  }
  KILN_UNREACHABLE("storage {}", static_cast<int>(storage));
}

std::string_view spelling(Level level) {
  switch (level) {
    case Level::kDevice: return "device";
    case Level::kCluster: return "cluster";
    case Level::kBlock: return "block";
    case Level::kGroup4: return "group-4";
    case Level::kGroup: return "group";
    case Level::kThread: return "thread";
  }
  KILN_UNREACHABLE("level {}", static_cast<int>(level));
}

std::string_view spelling(Engine engine) { return engine == Engine::kDma ? "dma" : "tma"; }

std::string_view spelling(MoveOp op) {
  switch (op) {
    case MoveOp::kCopy: return "copy";
    case MoveOp::kLoad: return "load";
    case MoveOp::kPad: return "pad";
    case MoveOp::kTransp: return "transp";
  }
  KILN_UNREACHABLE("move {}", static_cast<int>(op));
}

std::string_view spelling(Eviction eviction) {
  switch (eviction) {
    case Eviction::kNone: return "";
    case Eviction::kFirst: return "evict_first";
    case Eviction::kLast: return "evict_last";
  }
  KILN_UNREACHABLE("eviction {}", static_cast<int>(eviction));
}

std::string_view spelling(Major major) { return major == Major::kRow ? "row" : "col"; }

std::string_view spelling(Member member) {
  switch (member) {
    case Member::kData: return "data";
    case Member::kMdata: return "mdata";
    case Member::kSpan: return "span";
  }
  KILN_UNREACHABLE("member {}", static_cast<int>(member));
}

std::string_view spelling(SyncKind kind) {
  switch (kind) {
    case SyncKind::kShared: return "shared";
    case SyncKind::kLocal: return "local";
    case SyncKind::kGlobal: return "global";
    case SyncKind::kBarrier: return "barrier";
    case SyncKind::kFence: return "fence";
  }
  KILN_UNREACHABLE("sync {}", static_cast<int>(kind));
}

std::string_view spelling(ReduceOp op) {
  return op == ReduceOp::kMax ? "reduce_max" : "reduce_sum";
}

std::string_view spelling(ViewOpKind kind) {
  switch (kind) {
    case ViewOpKind::kChunkAt: return "chunkat";
    case ViewOpKind::kChunk: return "chunk";
    case ViewOpKind::kSubspan: return "subspan";
    case ViewOpKind::kModspan: return "modspan";
    case ViewOpKind::kView: return "view";
    case ViewOpKind::kSpanAs: return "span_as";
    case ViewOpKind::kSqueeze: return "sqz";
    case ViewOpKind::kZeroFill: return "zfill";
    case ViewOpKind::kMap: return "map";
    case ViewOpKind::kRemap: return "remap";
  }
  KILN_UNREACHABLE("view operation {}", static_cast<int>(kind));
}

}  // namespace kiln::ast
