#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

LinkConfig read_link(Section& section, const LinkConfig& fallback) {
  LinkConfig link;
  link.rate = section.rate("rate", fallback.rate);
  link.delay = section.duration("delay", fallback.delay);
  link.error_rate = section.number("error_rate", fallback.error_rate, 0, 1);
  if (link.rate > gbps(10'000)) section.complain("rate", "10 Tb/s is the fastest");
  if (link.rate < mbps(1)) section.complain("rate", "1 Mb/s is the slowest");
  if (link.delay > sec(1)) section.complain("delay", "1 s is the longest");
  return link;
}

}  // namespace

PlanLinks read_links(Section section) {
  PlanLinks links;
  links.host = read_link(section, {});
  Section fabric = section.section("fabric");
  links.fabric = read_link(fabric, links.host);
  fabric.done();
  section.done();
  return links;
}

}  // namespace verbena::fabric
