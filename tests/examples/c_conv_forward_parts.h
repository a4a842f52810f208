// The C example on a library that computes on the host, counts what is given back, and fails on demand.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Orders to the library, and its counts.
struct stand_in {
  int failing;           // the call that fails, counted from 1; 0: none
  int calls;             // that could fail
  int living;            // objects and blocks of memory that were made and not given back
  int overrun;           // blocks of memory that were written behind their ends
  int wrong_k, wrong_p;  // the output of row p and column 223 - p that is off by `wrong_by`
  double wrong_by;
  int wrong_run;  // of the three runs, from 1
  int runs;
  const char* hint;    // on each failure; NULL: none
  double swish_slope;  // the scalar of the code that was given
};
extern struct stand_in library;

int example_main(void);

// Output (k, p, q) without its activation, of waves as the example makes them.
double expected_output(int k, int p, int q);

#ifdef __cplusplus
}
#endif
