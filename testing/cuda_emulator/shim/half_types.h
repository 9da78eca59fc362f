// 16-bit floats as the CUDA headers name them; arithmetic is done in float and rounded once.
#pragma once

#include "device.h"

static inline uint32_t isoform_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static inline float isoform_float(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

// Round to the nearest of the 16-bit floats, ties to even.
static inline uint16_t isoform_to_half(float x) {
  const uint32_t u = isoform_bits(x), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7fffu;
  if (size >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (size < 0x38800000u)                          // below 2^-14: a multiple of 2^-24
    return sign | (uint16_t)lrintf(isoform_float(size) * 16777216.0f);
  const uint32_t rounded = size + 0xfffu + (size >> 13 & 1);
  return sign | (rounded - 0x38000000u) >> 13;
}
static inline float isoform_from_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = h & 0x7fffu;
  if (size >= 0x7c00u) return isoform_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  const float x = size < 0x400u ? (float)size / 16777216.0f : isoform_float((size << 13) + 0x38000000u);
  return sign ? -x : x;
}
static inline uint16_t isoform_to_bf16(float x) {
  const uint32_t u = isoform_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}
static inline float isoform_from_bf16(uint16_t b) { return isoform_float((uint32_t)b << 16); }

#define ISOFORM_HALF(name, to, from)                                                        \
  struct name {                                                                             \
    uint16_t bits;                                                                          \
    name() = default;                                                                       \
    name(float x) : bits(to(x)) {}                                                          \
    operator float() const { return from(bits); }                                           \
    name& operator+=(name y) { return *this = name(from(bits) + (float)y); }                \
  };                                                                                        \
  struct alignas(4) name##2 { name x, y; };                                                 \
  static inline name operator+(name x, name y) { return name((float)x + (float)y); }        \
  static inline name operator-(name x, name y) { return name((float)x - (float)y); }        \
  static inline name operator*(name x, name y) { return name((float)x * (float)y); }        \
  static inline name operator/(name x, name y) { return name((float)x / (float)y); }
ISOFORM_HALF(__half, isoform_to_half, isoform_from_half)
ISOFORM_HALF(__nv_bfloat16, isoform_to_bf16, isoform_from_bf16)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

static inline float __half2float(__half x) { return x; }
static inline __half __float2half(float x) { return x; }
static inline __half __float2half_rn(float x) { return x; }
static inline float __bfloat162float(__nv_bfloat16 x) { return x; }
static inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
