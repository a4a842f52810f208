// The algorithms that Kiln comes with, and the texts they are made from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// The templates that were built into this library.
SourceLibrary embedded_sources();

/// The embedded templates with those of `folder` (KILN_TEMPLATE_PATH) in their place: a copy of templates/, or of any
/// part of it with the same paths ("lib/math.cuh", "pool/pool_simple.cu"). For a person who edits kernels: nothing
/// needs to be rebuilt. Descriptors (.cpp) are compiled code, so those in the folder are not looked at.
///
/// Throws Error(io_error) if the folder or a file cannot be read, and Error(invalid_argument) if it holds no template,
/// a template that no algorithm is made from, a piece that no template includes, or an include that leads nowhere: an
/// edit that would silently have no effect is an error.
SourceLibrary sources_from(const std::filesystem::path& folder);

/// Every algorithm of Kiln, generating from `library`.
Catalogue make_catalogue(SourceLibrary library);
/// The same with the user templates of some folders; see read_user_templates(). Throws Error as that and
/// user_algorithms() do, and Error(invalid_argument) for a user template that is called as an algorithm of Kiln, or
/// that includes a piece that there is not.
Catalogue make_catalogue(SourceLibrary library, const std::vector<std::string>& user_folders);

}  // namespace kiln
