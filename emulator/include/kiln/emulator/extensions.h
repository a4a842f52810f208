/* Symbols that libkiln_emulator.so exports beyond the CUDA driver API. A real driver lacks these symbols: look them up
 * with dlsym and do without them where they are absent. Their presence is how a program knows that a device is
 * emulated.
 *
 * The functions may be called from any thread, before cuInit too. The text they return is the calling thread's: it
 * stays valid until that thread calls the same function again. */
#ifndef KILN_EMULATOR_EXTENSIONS_H
#define KILN_EMULATOR_EXTENSIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Initialises the driver as cuInit() does, without a line on standard error. Returns why it cannot be: a variable
 * KILN_EMULATOR_... that it does not know, or the value of one; "" where it is ready. */
const char* kiln_emulator_refused_setting(void);

/* Report of the fault that broke the calling thread's current context; if that context is well or there is none, of the
 * last fault in the process; "" if there was none. Names kernel, block, thread, instruction and PTX line. */
const char* kiln_emulator_last_fault(void);

/* The last launch that completed in the calling thread's current context, as one JSON object: geometry, occupancy,
 * executed counts and modelled time with its terms (docs/emulator.md lists the fields). "" if there was none. */
const char* kiln_emulator_last_launch_json(void);

/* All that completed in the calling thread's current context since this function was last called there, the oldest
 * first: a JSON array of such objects, of the latest 256. */
const char* kiln_emulator_launches_json(void);

/* Why the latest launch without a time in the calling thread's current context has none, of those that the function
 * above would return and the last one: "tensor instructions need nvdisasm". "" if all have a time. cuEventElapsedTime()
 * over such a launch returns CUDA_ERROR_NOT_SUPPORTED. */
const char* kiln_emulator_not_timed(void);

/* From now on (`on`: 1), or no longer (0), kernels, copies and fills in the calling thread's current context are timed
 * and not done: memory stays as it is. A kernel whose time depends on data is refused with CUDA_ERROR_NOT_SUPPORTED.
 * Returns 1, or 0 without a current context or if its device does not tell times by machine code, and then changes
 * nothing. */
int kiln_emulator_time_only(int on);

/* From now on the calling thread's current context records what one SM does in launches whose time is told by machine
 * code, for at most so many instructions of each: as "trace" of the launch's JSON object (docs/emulator.md). 0: no
 * more. */
void kiln_emulator_trace_launches(uint64_t instructions);

#ifdef __cplusplus
}
#endif

#endif
