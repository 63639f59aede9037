// Events of IDs: made from the adapter's reports, and done when the program reads them.
#pragma once

#include "abi/rdmacm/event_object.h"
#include "wire/ib/cm/req.h"

namespace verbena::rdmacm {

// Returns nullptr if the program gets no event for `news`.
[[nodiscard]] std::unique_ptr<EventObject> event_of(IdObject& id, const CMEvent& news);
[[nodiscard]] std::unique_ptr<EventObject> event_of_request(IdObject& listener,
                                                            std::unique_ptr<IdObject> made,
                                                            const StreamRequest& request);
[[nodiscard]] std::unique_ptr<EventObject> event_of_request(IdObject& listener,
                                                            std::unique_ptr<IdObject> made,
                                                            const cm::REQ& req,
                                                            std::span<const u8> private_data);
[[nodiscard]] std::unique_ptr<EventObject> event_of_request(IdObject& listener,
                                                            std::unique_ptr<IdObject> made,
                                                            std::span<const u8> private_data);

// The next event of an ID that works synchronously; 0, or -1 and errno: what it says has failed.
[[nodiscard]] int wait_for_event(IdObject& id);
// That, for an ID that does; 0 for others.
[[nodiscard]] int complete(IdObject& id);
void acknowledge_own_event(IdObject& id);

}  // namespace verbena::rdmacm
