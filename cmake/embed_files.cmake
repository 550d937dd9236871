# SPDX-License-Identifier: Apache-2.0
# skein_embed(OUT FILE...): a source file in the build folder, its path in OUT, that holds the bytes of the files: for
# skein.js a function absl::string_view skein::embedded::skein_js(). Made anew when one of them changes.
# The same file is the script that makes it: cmake -DOUTPUT=... -DFILES=... -P embed_files.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/embed_files.cmake.\n#include \"absl/strings/string_view.h\"\n\nnamespace skein::embedded {\n")
  foreach(file ${FILES})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    file(READ ${file} hex HEX)
    file(SIZE ${file} size)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND text "absl::string_view ${name}();\nabsl::string_view ${name}() {\n"
      "  static constexpr unsigned char bytes[] = {${bytes}0};\n"
      "  return {reinterpret_cast<const char*>(bytes), ${size}};\n}\n")
  endforeach()
  file(WRITE ${OUTPUT} "${text}}  // namespace skein::embedded\n")
  return()
endif()

set(skein_embed_script ${CMAKE_CURRENT_LIST_FILE})
function(skein_embed out)
  set(files)
  foreach(file ${ARGN})
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND files ${file})
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cc)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${files}" -P ${skein_embed_script}
    DEPENDS ${files} ${skein_embed_script} VERBATIM)
  set(${out} ${output} PARENT_SCOPE)
endfunction()
