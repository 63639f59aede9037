// Stop: asked now and then by what takes long. True ends it, with a mistake that says so.
#pragma once

#include <functional>

namespace verbena::jobs {

using Stop = std::function<bool()>;

}  // namespace verbena::jobs
