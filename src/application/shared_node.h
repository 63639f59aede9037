// SharedNode: one node for several programs. Each has a view, which is a Node of its own: it gets
// the events of the connections that it makes or, if it listens, that are made to its ports; and it
// has an alarm of its own.
//
// Contract: dispatch() when the node has events; then each program whose view has some polls it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "application/node.h"

namespace verbena::application {

class SharedNode {
 public:
  explicit SharedNode(Node& node);
  ~SharedNode();
  SharedNode(const SharedNode&) = delete;
  SharedNode& operator=(const SharedNode&) = delete;

  [[nodiscard]] Node& add_view();
  void dispatch();

 private:
  class View;
  void arm();

  Node& node_;
  std::vector<std::unique_ptr<View>> views_;
  std::map<ConnectionId, View*> owners_;
  std::map<u16, View*> listeners_;
  Time armed_ = Time::never();
};

}  // namespace verbena::application
