// A CUDA driver that has no device: memory is the host's, kernels are emulated ones.
//
// The test builds it as libcuda.so.1 and lets the real PyCUDA load it. A "cubin" is a FakeImage; a
// stream does its work at once, unless it is being captured: then the work becomes a node of a graph.
// What isoform does not use says "not supported". FAKE_CUDA_INIT=n makes cuInit return n.

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int R;
typedef unsigned long long Address;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, ILLEGAL_ADDRESS = 700, CAPTURING = 900, NOT_SUPPORTED = 801 };

// --- the emulated kernels (lowering/kernel_to_cuda/shim/scheduler.h) ------------------------------

typedef struct { unsigned x, y, z; } Index3;
typedef struct {
  void* kernel;
  void* touch;
  void* const* pointers;
  const long* bytes;
  const char* const* names;
  long count;
  Index3 grid, block;
  int waits, order;
  unsigned seed;
  int workers;
  char* message;
  long message_size;
} Launch;
enum { PARAMETERS = 32 };
typedef struct {
  char magic[8];
  int (*launch)(const Launch*);
  void* kernel;
  void* touch;
  long waits, count, bytes[PARAMETERS];
  char name[128];
} FakeImage;

// --- work: done at once, or kept in the graph that is being captured ------------------------------

typedef struct Node {
  R (*run)(void*);
  void* data;
  struct Node* next;
} Node;
typedef struct { Node *first, *last; } Graph;
static Graph* capturing;
static R sticky;

R fake_enqueue(R (*run)(void*), const void* data, size_t size) {
  if (sticky) return sticky;
  if (!capturing) return sticky = run((void*)data);
  Node* node = calloc(1, sizeof *node);
  node->run = run;
  node->data = memcpy(malloc(size), data, size);
  if (capturing->last) capturing->last->next = node; else capturing->first = node;
  capturing->last = node;
  return OK;
}

R cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)mode;
  if (!stream || capturing) return INVALID;
  capturing = calloc(1, sizeof *capturing);
  return OK;
}
R cuStreamEndCapture(void* stream, Graph** graph) {
  (void)stream;
  *graph = capturing;
  capturing = NULL;
  return *graph ? OK : INVALID;
}
R cuGraphInstantiateWithFlags(Graph** ready, Graph* graph, unsigned long long flags) {
  (void)flags;
  *ready = malloc(sizeof **ready);
  **ready = *graph;
  return OK;
}
R cuGraphLaunch(Graph* graph, void* stream) {
  if (!stream || capturing) return INVALID;
  for (Node* node = graph->first; node && !sticky; node = node->next) sticky = node->run(node->data);
  return sticky;
}
R cuGraphDestroy(Graph* graph) { free(graph); return OK; }
R cuGraphExecDestroy(Graph* graph) {
  for (Node *node = graph->first, *next; node; node = next) {
    next = node->next;
    free(node->data);
    free(node);
  }
  free(graph);
  return OK;
}

// --- device and context ---------------------------------------------------------------------------

R cuInit(unsigned flags) { const char* r = getenv("FAKE_CUDA_INIT"); (void)flags; return r ? atoi(r) : OK; }
R cuDriverGetVersion(int* version) { *version = 13000; return OK; }
R cuGetErrorString(R error, const char** text) {
  *text = error == NO_DEVICE ? "no CUDA-capable device is detected"
        : error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
        : error == OUT_OF_MEMORY ? "out of memory" : error == NOT_SUPPORTED ? "operation not supported" : "invalid argument";
  return OK;
}
R cuDeviceGetCount(int* count) { *count = 1; return OK; }
R cuDeviceGet(int* device, int number) { *device = number; return number ? INVALID : OK; }
R cuDeviceGetName(char* name, int size, int device) { (void)device; snprintf(name, size, "fake H100"); return OK; }
R cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = (size_t)1 << 30; return OK; }
R cuDeviceComputeCapability(int* major, int* minor, int device) { (void)device; *major = 9; *minor = 0; return OK; }
R cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 10: *value = 32; return OK;          // warp size
    case 16: *value = 132; return OK;         // multiprocessors
    case 38: *value = 1 << 10; return OK;     // L2: small, so that few copies of buffers exceed it
    case 75: *value = 9; return OK;           // compute capability
    case 76: *value = 0; return OK;
    default: *value = 1024; return OK;
  }
}
static int the_context;
static int depth;
R cuDevicePrimaryCtxRetain(void** context, int device) { (void)device; *context = &the_context; return OK; }
R cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
R cuCtxPushCurrent_v2(void* context) { ++depth; return context == &the_context ? OK : INVALID; }
R cuCtxPopCurrent_v2(void** context) { *context = &the_context; return depth-- > 0 ? OK : INVALID; }
R cuCtxGetDevice(int* device) { *device = 0; return OK; }
R cuCtxSynchronize(void) { return sticky; }
R cuCtxGetApiVersion(void* context, unsigned* version) { (void)context; *version = 13000; return OK; }

// --- memory: starts as NaN, and is not there to be allocated during a capture ----------------------

static size_t used;
R cuMemAlloc_v2(Address* address, size_t bytes) {
  if (capturing) return CAPTURING;
  if (used + bytes > (size_t)1 << 30) return OUT_OF_MEMORY;
  size_t* block = aligned_alloc(256, (bytes + 511) / 256 * 256);
  *block = bytes;
  used += bytes;
  *address = (Address)block + 256;
  memset(block + 32, 0xff, bytes);
  return OK;
}
R cuMemFree_v2(Address address) {
  size_t* block = (size_t*)(address - 256);
  used -= *block;
  free(block);
  return OK;
}
R cuMemGetInfo_v2(size_t* unused, size_t* total) { *total = (size_t)1 << 30; *unused = *total - used; return OK; }

typedef struct { void* to; const void* from; size_t bytes; } Copy;
static R copy(void* data) { Copy* c = data; memmove(c->to, c->from, c->bytes); return OK; }
static R enqueue_copy(void* to, const void* from, size_t bytes) {
  const Copy c = {to, from, bytes};
  return fake_enqueue(copy, &c, sizeof c);
}
R cuMemcpyHtoD_v2(Address to, const void* from, size_t n) { return enqueue_copy((void*)to, from, n); }
R cuMemcpyDtoH_v2(void* to, Address from, size_t n) { return enqueue_copy(to, (void*)from, n); }
R cuMemcpyDtoD_v2(Address to, Address from, size_t n) { return enqueue_copy((void*)to, (void*)from, n); }
R cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* s) { (void)s; return enqueue_copy((void*)to, from, n); }
R cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* s) { (void)s; return enqueue_copy(to, (void*)from, n); }
R cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void* s) { (void)s; return enqueue_copy((void*)to, (void*)from, n); }
typedef struct { void* to; int value; size_t bytes; } Set;
static R set(void* data) { Set* s = data; memset(s->to, s->value, s->bytes); return OK; }
R cuMemsetD8Async(Address to, unsigned char value, size_t n, void* stream) {
  const Set s = {(void*)to, value, n};
  (void)stream;
  return fake_enqueue(set, &s, sizeof s);
}

// --- modules and launches -------------------------------------------------------------------------

R cuModuleLoadDataEx(FakeImage** module, const void* image, unsigned n, void* options, void** values) {
  (void)n; (void)options; (void)values;
  if (memcmp(image, "FAKECUBN", 8) != 0) return 200;  // invalid image
  *module = memcpy(malloc(sizeof **module), image, sizeof **module);
  return OK;
}
R cuModuleGetFunction(FakeImage** function, FakeImage* module, const char* name) {
  *function = module;
  return strcmp(name, module->name) == 0 ? OK : 500;  // not found
}
R cuModuleUnload(FakeImage* module) { free(module); return OK; }
R cuFuncSetBlockShape(void* function, int x, int y, int z) { (void)function; (void)x; (void)y; (void)z; return OK; }
R cuFuncGetAttribute(int* value, int attribute, void* function) { (void)attribute; (void)function; *value = 0; return OK; }

typedef struct { FakeImage image; Index3 grid, block; void* pointers[PARAMETERS]; } Call;
static R launch(void* data) {
  Call* call = data;
  char message[512] = "";
  const char* names[PARAMETERS];
  for (int i = 0; i < PARAMETERS; ++i) names[i] = "a buffer";
  const Launch l = {call->image.kernel, call->image.touch, call->pointers, call->image.bytes, names,
                    call->image.count, call->grid, call->block, call->image.waits, 0, 1, 1, message, sizeof message};
  if (!call->image.launch(&l)) return OK;
  fprintf(stderr, "fake driver: %s: %s\n", call->image.name, message);
  return ILLEGAL_ADDRESS;
}
R cuLaunchKernel(FakeImage* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, void* stream, void** parameters, void** extra) {
  (void)shared; (void)stream; (void)parameters;
  Call call = {*f, {gx, gy, gz}, {bx, by, bz}, {0}};
  for (; extra && *extra; extra += 2)
    if (extra[0] == (void*)1) memcpy(call.pointers, extra[1], f->count * sizeof(void*));  // BUFFER_POINTER
  return fake_enqueue(launch, &call, sizeof call);
}

// --- streams and events ---------------------------------------------------------------------------

R cuStreamCreate(void** stream, unsigned flags) { (void)flags; *stream = malloc(1); return OK; }
R cuStreamDestroy_v2(void* stream) { free(stream); return OK; }
R cuStreamSynchronize(void* stream) { (void)stream; return capturing ? CAPTURING : sticky; }
R cuStreamQuery(void* stream) { (void)stream; return sticky; }
R cuStreamWaitEvent(void* stream, void* event, unsigned flags) { (void)stream; (void)event; (void)flags; return OK; }
typedef struct timespec Event;
R cuEventCreate(Event** event, unsigned flags) { (void)flags; *event = calloc(1, sizeof **event); return OK; }
R cuEventDestroy_v2(Event* event) { free(event); return OK; }
R cuEventRecord(Event* event, void* stream) { (void)stream; clock_gettime(CLOCK_MONOTONIC, event); return OK; }
R cuEventSynchronize(Event* event) { (void)event; return sticky; }
R cuEventQuery(Event* event) { (void)event; return sticky; }
R cuEventElapsedTime_v2(float* ms, Event* a, Event* b) {
  *ms = (b->tv_sec - a->tv_sec) * 1e3f + (b->tv_nsec - a->tv_nsec) * 1e-6f;
  return OK;
}
R cuProfilerStart(void) { return OK; }
R cuProfilerStop(void) { return OK; }

#define NO(name) R name(void) { return NOT_SUPPORTED; }
NO(cuArray3DCreate_v2) NO(cuArray3DGetDescriptor_v2) NO(cuArrayCreate_v2) NO(cuArrayDestroy)
NO(cuArrayGetDescriptor_v2) NO(cuCtxAttach) NO(cuCtxCreate_v4) NO(cuCtxDetach) NO(cuCtxDisablePeerAccess)
NO(cuCtxEnablePeerAccess) NO(cuCtxGetCacheConfig) NO(cuCtxGetLimit) NO(cuCtxGetSharedMemConfig)
NO(cuCtxSetCacheConfig) NO(cuCtxSetLimit) NO(cuCtxSetSharedMemConfig) NO(cuDeviceCanAccessPeer)
NO(cuDeviceGetByPCIBusId) NO(cuDeviceGetPCIBusId) NO(cuFuncSetAttribute)
NO(cuFuncSetCacheConfig) NO(cuFuncSetSharedSize) NO(cuGetExportTable) NO(cuIpcCloseMemHandle)
NO(cuIpcGetEventHandle) NO(cuIpcGetMemHandle) NO(cuIpcOpenEventHandle) NO(cuIpcOpenMemHandle_v2) NO(cuLaunch)
NO(cuLaunchGrid) NO(cuLaunchGridAsync) NO(cuLinkAddData_v2) NO(cuLinkAddFile_v2) NO(cuLinkComplete)
NO(cuLinkCreate_v2) NO(cuLinkDestroy) NO(cuMemAllocManaged) NO(cuMemAllocPitch_v2) NO(cuMemFreeHost)
NO(cuMemGetAddressRange_v2) NO(cuMemHostAlloc) NO(cuMemHostGetDevicePointer_v2) NO(cuMemHostGetFlags)
NO(cuMemHostRegister_v2) NO(cuMemHostUnregister) NO(cuMemcpy2DAsync_v2) NO(cuMemcpy2DUnaligned_v2)
NO(cuMemcpy2D_v2) NO(cuMemcpy3DAsync_v2) NO(cuMemcpy3DPeer) NO(cuMemcpy3DPeerAsync) NO(cuMemcpy3D_v2)
NO(cuMemcpyAtoA_v2) NO(cuMemcpyAtoD_v2) NO(cuMemcpyAtoH_v2) NO(cuMemcpyDtoA_v2) NO(cuMemcpyHtoA_v2)
NO(cuMemcpyPeer) NO(cuMemcpyPeerAsync) NO(cuMemsetD16Async) NO(cuMemsetD16_v2) NO(cuMemsetD2D16Async)
NO(cuMemsetD2D16_v2) NO(cuMemsetD2D32Async) NO(cuMemsetD2D32_v2) NO(cuMemsetD2D8Async) NO(cuMemsetD2D8_v2)
NO(cuMemsetD32Async) NO(cuMemsetD32_v2) NO(cuMemsetD8_v2) NO(cuModuleGetGlobal_v2) NO(cuModuleGetSurfRef)
NO(cuModuleGetTexRef) NO(cuModuleLoad) NO(cuModuleLoadData) NO(cuParamSetSize) NO(cuParamSetTexRef)
NO(cuParamSetf) NO(cuParamSeti) NO(cuParamSetv) NO(cuProfilerInitialize) NO(cuStreamAttachMemAsync)
NO(cuSurfRefGetArray) NO(cuSurfRefSetArray) NO(cuTexRefCreate) NO(cuTexRefDestroy) NO(cuTexRefGetAddressMode)
NO(cuTexRefGetAddress_v2) NO(cuTexRefGetArray) NO(cuTexRefGetFilterMode) NO(cuTexRefGetFlags)
NO(cuTexRefGetFormat) NO(cuTexRefSetAddress2D_v3) NO(cuTexRefSetAddressMode) NO(cuTexRefSetAddress_v2)
NO(cuTexRefSetArray) NO(cuTexRefSetFilterMode) NO(cuTexRefSetFlags) NO(cuTexRefSetFormat)
