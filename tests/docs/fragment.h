// Declarations that the text around a C++ fragment of the pages has introduced: each fragment is compiled in a function
// of its own, at whose beginning all of this is known (snippets_test.py).
#pragma once

#include <kiln/activation.h>
#include <kiln/call.h>
#include <kiln/conv.h>
#include <kiln/cuda_graph.h>
#include <kiln/memory.h>

#include <string>
#include <vector>

extern kiln::Context context;
extern const kiln::Tensor x, w, y, dy, dx, b, g, hidden;
extern kiln::Stream stream;
extern const kiln::Plan first, second;  // of two layers in a row
extern void* workspace;
extern const std::string folder_of_the_application;
extern const std::vector<kiln::Request> requests;

// The names of cuda.h that pages use: Kiln needs no CUDA header, and the tests have none.
using CUgraph = struct CUgraph_st*;
enum CUstreamCaptureMode { CU_STREAM_CAPTURE_MODE_GLOBAL };
int cuStreamBeginCapture(kiln::Stream, CUstreamCaptureMode);
int cuStreamEndCapture(kiln::Stream, CUgraph*);
extern CUgraph graph;
