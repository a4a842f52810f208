// Requests of strangers: text that must hold no code.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

/// Throws Error(invalid_argument) with the line and the name if `requests`, the text of a requests file, defines user
/// code (`expression NAME ... end expression`): such code runs with the rights of the process. For text from outside,
/// before parse_requests(). `hint`: how the caller's front allows it.
///
/// Bans no code of one's own: the requests may name expressions that the caller hands to parse_requests().
void require_no_code(std::string_view requests,
                     std::string hint = "call require_no_code() only for text whose author you would not run code of");

}  // namespace kiln
