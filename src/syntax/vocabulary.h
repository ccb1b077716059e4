// The closed sets of the language: operators, storage classes, levels, engines and the like, as
// enums, so that no later stage compares text.
//
//   spelling(BinaryOp::kCompose) == "#"      spelling(Level::kGroup4) == "group-4"
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::ast {

enum class UnaryOp : std::uint8_t {
  kNot,         // !x
  kMinus,       // -x
  kPlus,        // +x
  kComplement,  // ~x
  kBound,       // #x
  kAddress,     // &x, an argument of a call
  kPreIncrement,
  kPreDecrement,
  kPostIncrement,
  kPostDecrement,
};

enum class BinaryOp : std::uint8_t {
  kOr,
  kAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kShiftLeft,
  kShiftRight,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kBoundSubtract,   // #-
  kBoundAdd,        // #+
  kBoundMultiply,   // #*
  kBoundDivide,     // #/
  kBoundRemainder,  // #%
  kBitAnd,
  kBitOr,
  kBitXor,
  kCompose,  // #
};

enum class AssignOp : std::uint8_t { kSet, kAdd, kSubtract, kMultiply, kDivide, kRemainder };

enum class Storage : std::uint8_t { kNone, kGlobal, kShared, kLocal };
enum class Level : std::uint8_t { kDevice, kCluster, kBlock, kGroup4, kGroup, kThread };
enum class Engine : std::uint8_t { kDma, kTma };
enum class MoveOp : std::uint8_t { kCopy, kLoad, kPad, kTransp };
enum class Eviction : std::uint8_t { kNone, kFirst, kLast };
enum class Major : std::uint8_t { kRow, kCol };
enum class Member : std::uint8_t { kData, kMdata, kSpan };
enum class SyncKind : std::uint8_t { kShared, kLocal, kGlobal, kBarrier, kFence };
enum class ReduceOp : std::uint8_t { kMax, kSum };

enum class ViewOpKind : std::uint8_t {
  kChunkAt,
  kChunk,
  kSubspan,
  kModspan,
  kView,
  kSpanAs,
  kSqueeze,
  kZeroFill,
  kMap,    // .map<storage>(offset, count): other targets only
  kRemap,  // .remap<storage>(offset, count)
};

// The functions the language itself knows; see builtin.def for their names and argument counts.
enum class Builtin : std::uint8_t {
  kNone,  // a name the parser does not know: a passthrough intrinsic, or a mistake
#define KILN_BUILTIN(Name, text, args_min, args_max) k##Name,
#include "syntax/builtin.def"
#undef KILN_BUILTIN
};

struct BuiltinInfo {
  Builtin builtin;
  std::string_view name;
  int args_min;
  int args_max;
};
// Null for kNone.
[[nodiscard]] const BuiltinInfo* info(Builtin builtin);
[[nodiscard]] Builtin builtin_from_name(std::string_view name);  // kNone when unknown
[[nodiscard]] constexpr bool is_atomic(Builtin builtin) {
  return builtin >= Builtin::kAtomicAdd && builtin <= Builtin::kAtomicCas;
}

[[nodiscard]] std::string_view spelling(UnaryOp op);
[[nodiscard]] std::string_view spelling(BinaryOp op);
[[nodiscard]] std::string_view spelling(AssignOp op);
[[nodiscard]] std::string_view spelling(Storage storage);  // "" for kNone
[[nodiscard]] std::string_view spelling(Level level);
[[nodiscard]] std::string_view spelling(Engine engine);
[[nodiscard]] std::string_view spelling(MoveOp op);
[[nodiscard]] std::string_view spelling(Eviction eviction);  // "" for kNone
[[nodiscard]] std::string_view spelling(Major major);
[[nodiscard]] std::string_view spelling(Member member);
[[nodiscard]] std::string_view spelling(SyncKind kind);
[[nodiscard]] std::string_view spelling(ReduceOp op);
[[nodiscard]] std::string_view spelling(ViewOpKind kind);

}  // namespace kiln::ast
