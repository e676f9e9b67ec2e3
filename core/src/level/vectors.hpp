// Vectors of the level's width, and the exponential. Part of level.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hardmargin/level.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if !defined(HARDMARGIN_VECTOR_BYTES)
#if defined(__AVX512F__)
#define HARDMARGIN_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define HARDMARGIN_VECTOR_BYTES 32
#else
#define HARDMARGIN_VECTOR_BYTES 16
#endif
#endif

namespace hardmargin {
namespace {

constexpr int vector_bytes = HARDMARGIN_VECTOR_BYTES;
constexpr int vectors_per_tile = 64 / vector_bytes;

template <class T, int Bytes = vector_bytes>
struct Vector {
    typedef T type __attribute__((vector_size(Bytes), may_alias));
    typedef T unaligned __attribute__((vector_size(Bytes), may_alias, aligned(sizeof(T))));
};
template <class T>
using Vec = typename Vector<T>::type;

// Kernel values of as many rows as one Vec<double> holds.
template <class T>
using Narrow = typename Vector<T, vector_bytes* static_cast<int>(sizeof(T)) / 8>::unaligned;

template <class V, class T>
inline V load(const T* p) {
    return *reinterpret_cast<const V*>(p);
}
template <class V, class T>
inline void store(T* p, V v) {
    *reinterpret_cast<V*>(p) = v;
}
template <class T>
inline Vec<T> spread(T x) {
    return x - Vec<T>{};
}
template <class V>
inline V larger(V a, V b) {
    return a > b ? a : b;
}
template <class V>
inline V smaller(V a, V b) {
    return a < b ? a : b;
}

// One instruction each, which compilers do not make from the above. (For AVX-512 their code is good
// enough.)
#if HARDMARGIN_VECTOR_BYTES == 32 && defined(__AVX2__)
inline Vec<float> larger(Vec<float> a, Vec<float> b) { return _mm256_max_ps(a, b); }
inline Vec<float> smaller(Vec<float> a, Vec<float> b) { return _mm256_min_ps(a, b); }
inline Vec<double> larger(Vec<double> a, Vec<double> b) { return _mm256_max_pd(a, b); }
inline Vec<double> smaller(Vec<double> a, Vec<double> b) { return _mm256_min_pd(a, b); }
#elif HARDMARGIN_VECTOR_BYTES == 16 && defined(__SSE2__)
inline Vec<float> larger(Vec<float> a, Vec<float> b) { return _mm_max_ps(a, b); }
inline Vec<float> smaller(Vec<float> a, Vec<float> b) { return _mm_min_ps(a, b); }
inline Vec<double> larger(Vec<double> a, Vec<double> b) { return _mm_max_pd(a, b); }
inline Vec<double> smaller(Vec<double> a, Vec<double> b) { return _mm_min_pd(a, b); }
#endif

// Without the sign: one instruction, where the larger of v and -v takes two.
inline Vec<float> absolute(Vec<float> v) {
    using I = Vector<std::int32_t>::type;
    return reinterpret_cast<Vec<float>>(reinterpret_cast<I>(v) & 0x7fffffff);
}
inline Vec<double> absolute(Vec<double> v) {
    using I = Vector<std::int64_t>::type;
    return reinterpret_cast<Vec<double>>(reinterpret_cast<I>(v) & 0x7fffffffffffffff);
}

// The nearest number that is finite in T, so that extreme widths do no harm.
template <class T>
inline T finite(double x) {
    constexpr double largest = sizeof(T) == 4 ? 3e38 : 1e308;
    return static_cast<T>(x > largest ? largest : x < -largest ? -largest : x);
}

// 2^t for t <= 0. The clamp keeps subnormals, which cost four times as much, out of the sums; a
// NaN, which only infinite distances can give, comes out tiny.
inline Vec<float> exp2(Vec<float> t) {
    using I = Vector<std::int32_t>::type;
    t = larger(t, spread(-126.0f));
    const Vec<float> magic = spread(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
    const Vec<float> r = t + magic;
    const Vec<float> f = t - (r - magic);
    Vec<float> p = spread(1.326473670536149e-3f);  // minimax on [-1/2, 1/2], 9e-8 relative
    p = p * f + 9.671512563786754e-3f;
    p = p * f + 5.550733716344525e-2f;
    p = p * f + 2.4022242086294898e-1f;
    p = p * f + 6.931469776080764e-1f;
    p = p * f + 1.0f;
    return reinterpret_cast<Vec<float>>(reinterpret_cast<I>(p) + (reinterpret_cast<I>(r) << 23));
}

inline Vec<double> exp2(Vec<double> t) {
    using I = Vector<std::int64_t>::type;
    t = larger(t, spread(-1022.0));
    const Vec<double> magic = spread(6755399441055744.0);  // 1.5 * 2^52
    const Vec<double> r = t + magic;
    const Vec<double> f = t - (r - magic);
    constexpr double minimax[] = {// on [-1/2, 1/2], 5e-18 relative
                                  7.074112203581162e-09,
                                  1.0178125486258942e-07,
                                  1.321543338897091e-06,
                                  1.5252733684247801e-05,
                                  1.5403530460764842e-04,
                                  1.3333558146558133e-03,
                                  9.618129107591496e-03,
                                  5.5504108664821084e-02,
                                  2.4022650695910136e-01,
                                  6.931471805599453e-01,
                                  1.0};
    Vec<double> p = spread(4.445257140458853e-10);
    for (double c : minimax) p = p * f + c;
    return reinterpret_cast<Vec<double>>(reinterpret_cast<I>(p) + (reinterpret_cast<I>(r) << 52));
}

// Accumulators that fit into the registers besides the loaded values.
constexpr int accumulators = vector_bytes == 64 ? 16 : 8;

}  // namespace
}  // namespace hardmargin
