// Programs may include it, though `kiln build` puts its content in front of every program.
#pragma once

#include "kiln/co.h"
