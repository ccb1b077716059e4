// Must not compile: the strides of the literal lack a leaf.
#include "kiln/layout.h"

using namespace kiln;

constexpr Layout kWrong = "(4,8):(1)"_layout;
