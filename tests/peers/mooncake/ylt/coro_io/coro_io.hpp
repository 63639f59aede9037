// Of yalantinglibs Mooncake's TCP transport takes Asio alone, which Debian has as libasio-dev.
#pragma once

#include <asio.hpp>
