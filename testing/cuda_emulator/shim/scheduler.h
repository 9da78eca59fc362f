// What a kernel compiled for the CPU needs of the scheduler: indices, barriers, complaints.
#pragma once

struct Index3 {
  unsigned x, y, z;
};

extern __thread Index3 threadIdx, blockIdx;
extern Index3 blockDim, gridDim;

// The arguments of one launch. `kernel` runs one thread; `touch` makes this OS thread's shared
// memory exist. `order` is 0 (threads and blocks from the first on), 1 (from the last on) or 2
// (shuffled, anew after every barrier).
struct Launch {
  void (*kernel)(void* const* pointers);
  void (*touch)();
  void* const* pointers;
  const long* bytes;
  const char* const* names;
  long count;
  Index3 grid, block;
  int waits;  // whether the text has barriers or shuffles
  int order;
  unsigned seed;
  int workers;
  char* message;
  long message_size;
};

extern "C" {
int isoform_launch(const Launch* launch);
void isoform_barrier(int line);
void isoform_warp(unsigned mask, int line);
// The lanes' slots of the running thread's warp, to exchange values in.
unsigned long long* isoform_slots();
unsigned isoform_lane();
[[noreturn]] void isoform_outside(const char* name, long byte, long bytes, long size);
[[noreturn]] void isoform_misaligned(const char* name, long byte, long size);
// Check `size` bytes at an address, if it lies in a buffer of the launch.
void isoform_check(const void* address, long size);
}
