// IntrusiveList<T, &T::link>: a doubly linked FIFO whose links lie in the elements: O(1)
// everything, no allocation, an element leaves by itself. An element is in at most one list per
// link.
#pragma once

namespace verbena {

template <typename T>
struct ListLink {
  T* previous = nullptr;
  T* next = nullptr;
  bool linked = false;
};

template <typename T, ListLink<T> T::*kLink>
class IntrusiveList {
 public:
  IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return head_ == nullptr; }
  T* front() const { return head_; }  // nullptr if empty
  static bool contains(const T& element) { return (element.*kLink).linked; }

  // Does nothing when the element is in the list already.
  void push_back(T& element) {
    ListLink<T>& link = element.*kLink;
    if (link.linked) return;
    link = {tail_, nullptr, true};
    (tail_ != nullptr ? (tail_->*kLink).next : head_) = &element;
    tail_ = &element;
  }
  // Does nothing when the element is not in the list.
  void remove(T& element) {
    ListLink<T>& link = element.*kLink;
    if (!link.linked) return;
    (link.previous != nullptr ? (link.previous->*kLink).next : head_) = link.next;
    (link.next != nullptr ? (link.next->*kLink).previous : tail_) = link.previous;
    link = {};
  }
  T* pop_front() {  // nullptr if empty
    T* const element = head_;
    if (element != nullptr) remove(*element);
    return element;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace verbena
