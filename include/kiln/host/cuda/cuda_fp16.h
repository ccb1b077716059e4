// Stands in for CUDA's cuda_fp16.h in host code of a `.co` program.
#pragma once

#include "kiln/host/runtime.h"
