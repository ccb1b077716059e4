// Stands in for CUDA's cuda_bf16.h in host code of a `.co` program.
#pragma once

#include "kiln/host/runtime.h"
