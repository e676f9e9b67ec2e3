// The state of a machine as bytes, so that its training can resume later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hardmargin {

struct Resumption {
    std::string state;  // to resume from; empty: from the beginning
    // Called after this many seconds, and at the end; returns the seconds until it is called again.
    std::function<double(const std::string&)> keep;
    double seconds = 0;
};

inline std::uint64_t hash_of(std::string_view bytes) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    return hash;
}

class StateWriter {
  public:
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void operator()(const T& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    }
    template <class T, class Allocator>
    void operator()(const std::vector<T, Allocator>& values) {
        (*this)(values.size());
        bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }

    // All that was written, and its hash.
    std::string finish() {
        (*this)(hash_of(bytes_));
        return std::move(bytes_);
    }

  private:
    std::string bytes_;
};

// Reads what a StateWriter wrote, in the same order.
class StateReader {
  public:
    explicit StateReader(std::string_view bytes) {
        std::uint64_t hash = 0;
        if (bytes.size() < sizeof(hash)) return;
        const std::string_view content = bytes.substr(0, bytes.size() - sizeof(hash));
        std::memcpy(&hash, bytes.data() + content.size(), sizeof(hash));
        if (hash == hash_of(content)) left_ = content;
    }

    // Whether there is more to read: not if the bytes are damaged.
    bool has_more() const { return !left_.empty(); }
    // Whether all was read, and nothing was missing.
    bool is_done() const { return !is_short_ && left_.empty(); }

    // Where bytes are missing, values stay as they are.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void operator()(T& value) {
        if (const char* from = take(sizeof(T))) std::memcpy(&value, from, sizeof(T));
    }
    void operator()(bool& value) {
        if (const char* from = take(sizeof(bool))) value = *from != 0;
    }
    template <class T, class Allocator>
    void operator()(std::vector<T, Allocator>& values) {
        std::size_t n = 0;
        (*this)(n);
        if (n > left_.size() / sizeof(T)) is_short_ = true;
        if (is_short_) return;
        values.resize(n);
        if (n) std::memcpy(values.data(), take(n * sizeof(T)), n * sizeof(T));
    }

  private:
    const char* take(std::size_t n) {
        is_short_ = is_short_ || n > left_.size();
        if (is_short_) return nullptr;
        const char* begin = left_.data();
        left_.remove_prefix(n);
        return begin;
    }

    bool is_short_ = false;
    std::string_view left_;
};

}  // namespace hardmargin
