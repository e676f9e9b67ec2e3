// Vectors whose memory starts on a cache line, as the tiles need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hardmargin {

template <class T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// The same for large arrays that are written before they are read: new elements are not cleared.
template <class T>
struct RawAllocator : AlignedAllocator<T> {
    template <class U>
    struct rebind {
        using other = RawAllocator<U>;
    };
    RawAllocator() = default;
    template <class U>
    RawAllocator(const RawAllocator<U>&) {}
    T* allocate(std::size_t n) {
        T* p = AlignedAllocator<T>::allocate(n);
#if defined(__linux__)
        // Large pages are filled faster; without them, nothing is lost.
        constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
        const auto first = (reinterpret_cast<std::uintptr_t>(p) + page - 1) / page * page;
        const auto last = (reinterpret_cast<std::uintptr_t>(p) + n * sizeof(T)) / page * page;
        if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
        return p;
    }
    template <class U>
    void construct(U* p) {
        ::new (static_cast<void*>(p)) U;
    }
};

template <class T>
using RawVector = std::vector<T, RawAllocator<T>>;

inline std::size_t round_up(std::size_t n, std::size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

}  // namespace hardmargin
