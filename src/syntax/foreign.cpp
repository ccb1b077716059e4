#include "syntax/foreign.h"

#include "support/dtype.h"
#include "support/format.h"
#include "syntax/vocabulary.h"

namespace kiln::syntax {

namespace {

struct ForeignWord {
  std::string_view word;
  std::string_view help;
};

// Words whose meaning has another form here, or a name that does not resemble theirs.
constexpr ForeignWord kForeignWords[] = {
    {"blockIdx", "a block's index is the variable of its `parallel`: `parallel b by N : block`"},
    {"threadIdx",
     "a thread's index is the variable of its `parallel`: `parallel t by 64 : thread`"},
    {"blockDim", "an extent is `#t`, where `t` is the variable of the `parallel`"},
    {"gridDim", "an extent is `#b`, where `b` is the variable of the `parallel`"},
    {"__shared__", "a buffer of the block is declared `shared f32 [64] s;`"},
    {"__syncthreads", "a barrier of the block is `sync.shared;`"},
    {"__syncwarp", "a barrier of the warp is `sync.local;`"},
    {"printf", "here it is `println(\"t = \", t);`"},
    {"memcpy", "here it is `dma.copy source => destination;`"},
    {"__ldg", "an element is read with `x.at(i)`"},
    {"__half2float", "a conversion is written `__to<f32>(x)`"},
    {"__bfloat162float", "a conversion is written `__to<f32>(x)`"},
    {"__float2half", "a conversion is written `__to<f16>(x)`"},
    {"__float2bfloat16", "a conversion is written `__to<bf16>(x)`"},
    {"static_cast", "a conversion is written `__to<f32>(x)`"},
    {"reinterpret_cast", "the bits of another type are `__bitcast<f32>(x)`"},
    {"ceildiv", "here it is called `cdiv`"},
    {"ceil_div", "here it is called `cdiv`"},
    {"abs", "here it is called `__fabs`"},
    {"fmax", "here it is called `__max`"},
    {"fmaxf", "here it is called `__max`"},
    {"fmin", "here it is called `__min`"},
    {"fminf", "here it is called `__min`"},
    {"atomicAdd", "here it is called `__atomic_add`"},
    {"atomicSub", "here it is called `__atomic_sub`"},
    {"atomicMin", "here it is called `__atomic_min`"},
    {"atomicMax", "here it is called `__atomic_max`"},
    {"atomicExch", "here it is called `__atomic_exch`"},
    {"atomicCAS", "here it is called `__atomic_cas`"},
    {"atomicAnd", "here it is called `__atomic_and`"},
    {"atomicOr", "here it is called `__atomic_or`"},
    {"atomicXor", "here it is called `__atomic_xor`"},
};

// `expf`, `exp`, `__expf` and `exp2` are `__exp` and `__exp2f`.
std::string function_help(std::string_view word) {
  if (word.starts_with("__")) word.remove_prefix(2);
  const std::string plain(word);
  const std::string single = plain.ends_with('f') ? plain.substr(0, plain.size() - 1) : plain + "f";
  for (const std::string& each : {"__" + plain, "__" + single}) {
    if (ast::builtin_from_name(each) != ast::Builtin::kNone) {
      return format("here it is called `{}`", each);
    }
  }
  return "";
}

}  // namespace

std::string foreign_help(std::string_view word) {
  for (const ForeignWord& each : kForeignWords) {
    if (each.word == word) return std::string(each.help);
  }
  return function_help(word);
}

std::string conversion_help(std::string_view type) {
  const auto known = dtype_from_name(type);
  return format("a conversion is written `__to<{}>(x)`",
                known ? std::string(kiln::name(*known)) : std::string(type));
}

}  // namespace kiln::syntax
