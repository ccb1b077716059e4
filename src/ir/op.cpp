#include "ir/op.h"

#include "support/one_of_members.h"

template class kiln::OneOf<
#define KILN_OP(Name, ...) kiln::ir::Name,
#include "ir/op.def"
#undef KILN_OP
    kiln::ir::NoOp>;
