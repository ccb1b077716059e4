// Stands in for CUDA's cuda_fp8.h in host code of a `.co` program.
#pragma once

#include "kiln/host/runtime.h"
