// CUDA C on the CPU: enough of the language for generated kernels, with every access checked.
//
// The kernel's text is compiled as it is; only its parameter list is replaced, by Buffers.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "scheduler.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static thread_local
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __syncthreads() isoform_barrier(__LINE__)
#define __syncwarp(...) isoform_warp(0xffffffffu, __LINE__)

static const int warpSize = 32;

// --- buffers ------------------------------------------------------------------------------------

// A pointer into a buffer that knows where the buffer ends.
template <class T>
struct Buffer {
  char* base;
  long at, bytes;
  const char* name;

  T& operator[](long i) const {
    const long k = at + i * (long)sizeof(T);
    if (k < 0 || k + (long)sizeof(T) > bytes) isoform_outside(name, k, bytes, sizeof(T));
    if (k % (long)alignof(T) != 0) isoform_misaligned(name, k, sizeof(T));
    return *(T*)(base + k);
  }
  T& operator*() const { return (*this)[0]; }
  Buffer operator+(long i) const { return {base, at + i * (long)sizeof(T), bytes, name}; }
  Buffer operator-(long i) const { return *this + -i; }
  Buffer& operator+=(long i) { return *this = *this + i; }
  Buffer& operator-=(long i) { return *this = *this - i; }
  Buffer& operator++() { return *this += 1; }
  operator Buffer<const T>() const { return {base, at, bytes, name}; }
  // For functions that take a pointer: one element must be there, and a recast checks the rest.
  operator T*() const { return &**this; }
};

// reinterpret_cast of a Buffer stays a Buffer; of an address of an element, it is checked at once.
template <class P>
struct Recast;
template <class U>
struct Recast<U*> {
  template <class T>
  static Buffer<U> of(Buffer<T> b) {
    return {b.base, b.at, b.bytes, b.name};
  }
  template <class T>
  static U* of(T* p) {
    isoform_check(p, sizeof(U));
    return (U*)p;
  }
};
#define reinterpret_cast isoform_recast
template <class P, class B>
auto isoform_recast(B b) -> decltype(Recast<P>::of(b)) {
  return Recast<P>::of(b);
}
template <class T>
T __ldg(Buffer<const T> p) {
  return *p;
}
template <class T>
T __ldg(const T* p) {
  isoform_check(p, sizeof(T));
  return *p;
}

// --- vectors ------------------------------------------------------------------------------------

#define ISOFORM_VECTORS(T, name)                                                    \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                 \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ISOFORM_VECTORS(float, float)
ISOFORM_VECTORS(double, double)
ISOFORM_VECTORS(signed char, char)
ISOFORM_VECTORS(unsigned char, uchar)
ISOFORM_VECTORS(short, short)
ISOFORM_VECTORS(unsigned short, ushort)
ISOFORM_VECTORS(int, int)
ISOFORM_VECTORS(unsigned int, uint)
ISOFORM_VECTORS(long long, longlong)

// --- warps --------------------------------------------------------------------------------------

template <class T>
T isoform_shuffle(unsigned mask, T value, unsigned from, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof(T));
  isoform_slots()[isoform_lane()] = bits;
  isoform_warp(mask, line);
  bits = isoform_slots()[from % 32];
  isoform_warp(mask, line);
  T found;
  memcpy(&found, &bits, sizeof(T));
  return found;
}
// As the hardware: a lane outside its group of `width` reads itself.
template <class T>
T isoform_shuffle_to(unsigned mask, T value, int lane, int width, int line) {
  const int own = (int)isoform_lane(), first = own / width * width;
  const bool inside = lane >= first && lane < first + width;
  return isoform_shuffle(mask, value, inside ? lane : own, line);
}
#define ISOFORM_WIDTH(_, width, ...) width
#define __shfl_sync(mask, v, lane, ...) \
  isoform_shuffle(mask, v, isoform_lane() / 32 * 32 + (lane), __LINE__)
#define __shfl_down_sync(mask, v, delta, ...)                          \
  isoform_shuffle_to(mask, v, (int)isoform_lane() + (int)(delta),      \
                     ISOFORM_WIDTH(0, ##__VA_ARGS__, 32, 0), __LINE__)
#define __shfl_up_sync(mask, v, delta, ...)                            \
  isoform_shuffle_to(mask, v, (int)isoform_lane() - (int)(delta),      \
                     ISOFORM_WIDTH(0, ##__VA_ARGS__, 32, 0), __LINE__)
#define __shfl_xor_sync(mask, v, bits, ...)                            \
  isoform_shuffle_to(mask, v, (int)isoform_lane() ^ (int)(bits),       \
                     ISOFORM_WIDTH(0, ##__VA_ARGS__, 32, 0), __LINE__)

// --- arithmetic that C++ has not, or has under other names --------------------------------------

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define __expf expf  // glibc's math.h declares functions of these names
#define __logf logf
#define __sinf sinf
#define __cosf cosf
#define __powf powf
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
static inline float __int_as_float(int i) {
  float x;
  memcpy(&x, &i, 4);
  return x;
}
static inline int __float_as_int(float x) {
  int i;
  memcpy(&i, &x, 4);
  return i;
}
static inline double __longlong_as_double(long long i) {
  double x;
  memcpy(&x, &i, 8);
  return x;
}
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline int min(int x, int y) { return x < y ? x : y; }
static inline int max(int x, int y) { return x > y ? x : y; }
static inline unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }
static inline unsigned max(unsigned x, unsigned y) { return x > y ? x : y; }
static inline long long min(long long x, long long y) { return x < y ? x : y; }
static inline long long max(long long x, long long y) { return x > y ? x : y; }
static inline long min(long x, long y) { return x < y ? x : y; }
static inline long max(long x, long y) { return x > y ? x : y; }
