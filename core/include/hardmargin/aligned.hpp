// Vectors whose memory starts on a cache line, as the tiles need.
#pragma once

#include <cstddef>
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
#if defined(__linux__)
    // Large arrays have pages of their own, which go back to the system with them. Large pages are
    // filled faster; on the heap they would also be taken by small arrays later on.
    static constexpr std::size_t least_mapped = std::size_t{1} << 22;

    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        if (bytes < least_mapped) return AlignedAllocator<T>::allocate(n);
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) throw std::bad_alloc();
        madvise(p, bytes, MADV_HUGEPAGE);  // without them, nothing is lost
        return static_cast<T*>(p);
    }
    void deallocate(T* p, std::size_t n) {
        if (n * sizeof(T) < least_mapped) AlignedAllocator<T>::deallocate(p, n);
        else munmap(p, n * sizeof(T));
    }
#endif
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
