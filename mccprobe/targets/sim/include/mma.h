// Public WMMA header, as in the SDK: the implementation stands in crt/mma.h.
#pragma once
#include <crt/mma.h>
