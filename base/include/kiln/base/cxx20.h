// Says what the C++ headers need where they are compiled as an older C++, before the errors that follow from it.
#pragma once

#if __cplusplus < 202002L
#error "Kiln's C++ headers need C++20: compile with -std=c++20. kiln/kiln.h is for C, and for any C++."
#endif
