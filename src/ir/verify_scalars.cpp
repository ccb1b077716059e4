// Rules of scalar operations: their operands' and results' types.
#include "ir/cuda_text.h"
#include "ir/functions.h"
#include "ir/names.h"
#include "ir/printed.h"
#include "ir/rules.h"

namespace kiln::ir {

namespace {

const ScalarType* result_scalar(const Function& f, OpId id) {
  return type_as<ScalarType>(f, f.ops[id].result);
}

// An operand that is given and has the wrong type.
bool is_not(const Function& f, ValueId value, DType dtype) {
  return value.valid() && !is_scalar_of(f, value, dtype);
}

void scalars_are_made(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const OpKind kind = f.ops[id].kind();
    const bool makes_scalar = kind == OpKind::kConst || kind == OpKind::kCast ||
                              kind == OpKind::kIndex || kind == OpKind::kUnary ||
                              kind == OpKind::kBinary || kind == OpKind::kChoose ||
                              kind == OpKind::kFma;
    if (!makes_scalar || !f.ops[id].result.valid() || result_scalar(f, id) != nullptr) return;
    complain(mistakes, f, id, "its result is a scalar");
  });
}

void prints_have_their_values(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Print>(f, [&](const Print& print, OpId id) {
    const std::size_t places = places_in(print.text);
    if (places != print.values.size()) {
      complain(mistakes, f, id, "{} values for {} places", print.values.size(), places);
    }
    for (const ValueId value : print.values) {
      const ScalarType* type = type_as<ScalarType>(f, value);
      if (type == nullptr) {
        complain(mistakes, f, id, "a value is no scalar");
      } else if (is_float(type->dtype) && type->dtype != DType::kF32 &&
                 type->dtype != DType::kF64) {
        complain(mistakes, f, id, "a value of {}", name(type->dtype));
      }
    }
  });
}

void cuda_has_its_values(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Cuda>(f, [&](const Cuda& cuda, OpId id) {
    const CudaPlaces places = places_in_cuda(cuda.text);
    const bool named = !cuda.names.empty();
    const std::size_t passed = named ? 0 : cuda.passed.size();
    const std::size_t numbers = named ? 0 : cuda.numbers.size();
    if (places.passed != passed || places.numbers != numbers) {
      complain(mistakes, f, id, "{} and {} values for {} and {} places", passed, numbers,
               places.passed, places.numbers);
    }
    if (named && cuda.names.size() != cuda.passed.size() + cuda.numbers.size()) {
      complain(mistakes, f, id, "{} names for {} values", cuda.names.size(),
               cuda.passed.size() + cuda.numbers.size());
    }
    for (const ValueId value : cuda.numbers) {
      if (type_as<ScalarType>(f, value) == nullptr) {
        complain(mistakes, f, id, "a number is no scalar");
      }
    }
    for (const ValueId value : cuda.passed) {
      if (type_as<ViewType>(f, value) == nullptr && type_as<CellType>(f, value) == nullptr &&
          type_as<FragType>(f, value) == nullptr) {
        complain(mistakes, f, id, "it is passed what is no view, no cell and no register tile");
      }
    }
  });
}

void binary_operands_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Binary>(f, [&](const Binary& binary, OpId id) {
    const ScalarType* left = type_as<ScalarType>(f, binary.left);
    const ScalarType* right = type_as<ScalarType>(f, binary.right);
    if (!binary.left.valid() || !binary.right.valid()) return;
    if (left == nullptr || right == nullptr) {
      complain(mistakes, f, id, "an operand is no scalar");
    } else if (left->dtype != right->dtype) {
      complain(mistakes, f, id, "{} and {}", name(left->dtype), name(right->dtype));
    } else if (is_logical(binary.kind) && left->dtype != DType::kBool) {
      complain(mistakes, f, id, "{} operands, not bool", name(left->dtype));
    } else if (class_of(binary.kind) == BinaryClass::kFunction && left->dtype != DType::kF32 &&
               left->dtype != DType::kF64) {
      complain(mistakes, f, id, "a function of f32 or f64");
    }
  });
}

void binary_results_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Binary>(f, [&](const Binary& binary, OpId id) {
    const ScalarType* left = type_as<ScalarType>(f, binary.left);
    const ScalarType* result = result_scalar(f, id);
    if (left == nullptr || result == nullptr) return;
    const bool gives_bool = is_comparison(binary.kind) || is_logical(binary.kind);
    const DType expected = gives_bool ? DType::kBool : left->dtype;
    if (result->dtype == expected) return;
    complain(mistakes, f, id, "the result is {}, not {}", name(expected), name(result->dtype));
  });
}

void unary_types_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Unary>(f, [&](const Unary& unary, OpId id) {
    const ScalarType* result = result_scalar(f, id);
    if (result == nullptr) return;
    const DType expected = unary.kind == UnaryKind::kNot ? DType::kBool : result->dtype;
    if (result->dtype != expected || is_not(f, unary.operand, expected)) {
      complain(mistakes, f, id, "operand and result are {}", name(expected));
    }
    const bool wide = result->dtype == DType::kF32 || result->dtype == DType::kF64;
    if (is_function(unary.kind) && !wide) complain(mistakes, f, id, "a function of f32 or f64");
  });
}

void casts_are_of_scalars(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Cast>(f, [&](const Cast& cast, OpId id) {
    if (!cast.operand.valid() || type_as<ScalarType>(f, cast.operand) != nullptr) return;
    complain(mistakes, f, id, "`%{}` is no scalar", f.values[cast.operand].name);
  });
}

void bitcasts_keep_the_width(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Bitcast>(f, [&](const Bitcast& cast, OpId id) {
    const ScalarType* result = result_scalar(f, id);
    const ScalarType* operand =
        cast.operand.valid() ? type_as<ScalarType>(f, cast.operand) : nullptr;
    if (result == nullptr || operand == nullptr) return;
    if (info(result->dtype).bits == info(operand->dtype).bits) return;
    complain(mistakes, f, id, "{} as {}", name(operand->dtype), name(result->dtype));
  });
}

void choices_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Choose>(f, [&](const Choose& choose, OpId id) {
    const ScalarType* result = result_scalar(f, id);
    if (result == nullptr) return;
    for (const ValueId value : {choose.if_true, choose.if_false}) {
      if (!is_not(f, value, result->dtype)) continue;
      complain(mistakes, f, id, "`%{}` is no {}", f.values[value].name, name(result->dtype));
    }
  });
}

void fused_types_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Fma>(f, [&](const Fma& fma, OpId id) {
    const ScalarType* result = result_scalar(f, id);
    if (result == nullptr) return;
    constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
    if (std::ranges::find(kTypes, result->dtype) == std::end(kTypes)) {
      complain(mistakes, f, id, "a function of f64, f32, f16 or bf16");
    }
    for (const ValueId value : {fma.a, fma.b, fma.c}) {
      if (!is_not(f, value, result->dtype)) continue;
      complain(mistakes, f, id, "`%{}` is no {}", f.values[value].name, name(result->dtype));
    }
  });
}

void cells_agree(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const Op& op = f.ops[id];
    const Get* get = std::get_if<Get>(&op.data);
    const Set* set = std::get_if<Set>(&op.data);
    if (get == nullptr && set == nullptr) return;
    const ValueId cell = get != nullptr ? get->cell : set->cell;
    const ValueId content = get != nullptr ? op.result : set->value;
    if (!cell.valid()) return;
    const CellType* type = type_as<CellType>(f, cell);
    if (type == nullptr) {
      complain(mistakes, f, id, "`%{}` is no cell", f.values[cell].name);
    } else if (is_not(f, content, type->dtype)) {
      complain(mistakes, f, id, "`%{}` is no {}", f.values[content].name, name(type->dtype));
    }
  });
}

void indices_are_integers(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Index>(f, [&](const Index&, OpId id) {
    const ScalarType* result = result_scalar(f, id);
    if (result == nullptr || result->dtype == DType::kS32 || result->dtype == DType::kS64) return;
    complain(mistakes, f, id, "the result is s32 or s64, not {}", name(result->dtype));
  });
}

void binds_are_integers(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Bind>(f, [&](const Bind& bind, OpId id) {
    const ScalarType* value = type_as<ScalarType>(f, bind.value);
    if (!bind.value.valid() || (value != nullptr && is_integer(value->dtype))) return;
    complain(mistakes, f, id, "`%{}` is no integer", f.values[bind.value].name);
  });
}

constexpr Rule kScalarRules[] = {
    {"scalars-are-made", Form::kTile, scalars_are_made},
    {"binary-operands-agree", Form::kTile, binary_operands_agree},
    {"binary-results-agree", Form::kTile, binary_results_agree},
    {"unary-types-agree", Form::kTile, unary_types_agree},
    {"casts-are-of-scalars", Form::kTile, casts_are_of_scalars},
    {"bitcasts-keep-the-width", Form::kTile, bitcasts_keep_the_width},
    {"fused-types-agree", Form::kTile, fused_types_agree},
    {"choices-agree", Form::kTile, choices_agree},
    {"cells-agree", Form::kTile, cells_agree},
    {"indices-are-integers", Form::kTile, indices_are_integers},
    {"binds-are-integers", Form::kTile, binds_are_integers},
    {"prints-have-their-values", Form::kTile, prints_have_their_values},
    {"cuda-has-its-values", Form::kTile, cuda_has_its_values},
};

}  // namespace

std::span<const Rule> scalar_rules() { return kScalarRules; }

}  // namespace kiln::ir
