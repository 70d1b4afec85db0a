// LazyArray<T>: a fixed number of zeroed plain values whose memory the system commits only as it is
// touched. For arrays that are sized for the worst case and mostly never used.
//
// Move-only. Threads: none of its own. Errors: throws std::bad_alloc, as containers do.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace quire {

template <class T>
class LazyArray {
  static_assert(std::is_trivial_v<T>);

 public:
  LazyArray() = default;
  explicit LazyArray(size_t size)
      // calloc takes large blocks from fresh pages of the kernel, which are zero already.
      : values_(static_cast<T*>(std::calloc(size > 0 ? size : 1, sizeof(T)))), size_(size) {
    if (values_ == nullptr) throw std::bad_alloc();
  }

  T* data() { return values_.get(); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return values_.get()[i]; }
  const T& operator[](size_t i) const { return values_.get()[i]; }
  operator std::span<const T>() const { return {values_.get(), size_}; }  // NOLINT: implicit

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> values_;
  size_t size_ = 0;
};

}  // namespace quire
