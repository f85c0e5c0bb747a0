# Files inside the binary: an assembler file with one .incbin a file, and a small .cpp with the table of them.
# Nets go into tahl_nn (nn/evaluator.h: embedded_nets), the board's page into tahl_app (app/page.h: page_files).

option(TAHL_PAGE "Bundle the board's page for `tahl play` (needs npm)" ON)

# Writes ${out}.S and ${out}.cpp and links them into `target`. `table` is the .cpp's text, in which @FILES@ stands
# for one {name, type, bytes} or {name, bytes} a file; `entries` are "symbol|initialiser before the bytes|path".
function(tahl_embed target out table)
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "INTERFACE_LIBRARY")
    return() # the folder has no sources yet
  endif()
  # Read-only data on a cache line, and no executable stack; the spelling that every architecture's gas takes.
  set(assembly ".section .note.GNU-stack,\"\",%progbits\n.section .rodata\n")
  set(declarations "")
  set(rows "")
  set(paths "")
  foreach(entry IN LISTS ARGN)
    string(REPLACE "|" ";" parts "${entry}")
    list(GET parts 0 symbol)
    list(GET parts 1 fields)
    list(GET parts 2 path)
    string(APPEND assembly ".balign 64\n.global ${symbol}\n.global ${symbol}_end\n"
                           "${symbol}:\n.incbin \"${path}\"\n${symbol}_end:\n.byte 0\n")
    string(APPEND declarations "extern \"C\" const unsigned char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {${fields}, {${symbol}, ${symbol}_end}},\n")
    list(APPEND paths "${path}")
  endforeach()
  string(REPLACE "@DECLARATIONS@" "${declarations}" table "${table}")
  string(REPLACE "@FILES@" "${rows}" table "${table}")
  file(CONFIGURE OUTPUT ${out}.S CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT ${out}.cpp CONTENT "${table}" @ONLY)
  set_source_files_properties(${out}.S PROPERTIES OBJECT_DEPENDS "${paths}")
  # Apart from `target`, whose compile options are C++'s.
  add_library(${target}_bytes OBJECT ${out}.S)
  set_target_properties(${target}_bytes PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  target_sources(${target} PRIVATE ${out}.cpp $<TARGET_OBJECTS:${target}_bytes>)
endfunction()

# ---- nets: all of nets/*.safetensors, alphabetically, but the one that nets/default.txt names first ----

file(GLOB nets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nets/*.safetensors)
file(GLOB default_net CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nets/default.txt)
list(SORT nets)
if(default_net)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${default_net})
  file(STRINGS ${default_net} default_name LIMIT_COUNT 1)
  set(default_path ${PROJECT_SOURCE_DIR}/nets/${default_name}.safetensors)
  if(NOT default_path IN_LIST nets)
    message(FATAL_ERROR "nets/default.txt: there is no nets/${default_name}.safetensors")
  endif()
  list(REMOVE_ITEM nets ${default_path})
  list(PREPEND nets ${default_path})
endif()

set(entries "")
foreach(net IN LISTS nets)
  get_filename_component(name ${net} NAME_WLE)
  list(LENGTH entries i)
  list(APPEND entries "tahl_net_${i}|\"${name}\"|${net}")
endforeach()
tahl_embed(tahl_nn ${PROJECT_BINARY_DIR}/embedded/nets [=[
#include <vector>

#include "nn/evaluator.h"

@DECLARATIONS@
namespace tahl::nn {
std::span<const EmbeddedNet> embedded_nets() {
  static const std::vector<EmbeddedNet> nets = {
@FILES@  };
  return nets;
}
}  // namespace tahl::nn
]=] ${entries})

# ---- the board's page: npm ci and esbuild, in the build directory so that the source tree stays clean ----

set(entries "")
if(TAHL_PAGE)
  find_program(NPM npm)
  find_program(NODE NAMES node nodejs)
  if(NOT NPM OR NOT NODE)
    message(FATAL_ERROR "the board's page needs node and npm: install Debian's npm, or configure with -DTAHL_PAGE=OFF")
  endif()
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(web_build ${PROJECT_BINARY_DIR}/web)
  file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${web}/src/*)
  add_custom_command(
    OUTPUT ${web_build}/installed.stamp
    DEPENDS ${web}/package.json ${web}/package-lock.json
    COMMAND ${CMAKE_COMMAND} -E copy ${web}/package.json ${web}/package-lock.json ${web}/.npmrc ${web_build}
    COMMAND ${NPM} ci --silent --no-audit --no-fund
    COMMAND ${CMAKE_COMMAND} -E touch ${web_build}/installed.stamp
    WORKING_DIRECTORY ${web_build}
    COMMENT "Installing what the board's page is built from (npm ci)"
    VERBATIM)
  file(MAKE_DIRECTORY ${web_build})
  set(page_files index.html page.js page.css icon.svg)
  set(page_types text/html text/javascript text/css image/svg+xml)
  list(TRANSFORM page_files PREPEND ${web_build}/page/ OUTPUT_VARIABLE page_paths)
  add_custom_command(
    OUTPUT ${page_paths}
    DEPENDS ${web_sources} ${web}/build.mjs ${web_build}/installed.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${web_build}/src
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${web}/src ${web_build}/src
    COMMAND ${CMAKE_COMMAND} -E copy ${web}/build.mjs ${web_build}
    COMMAND ${NODE} build.mjs page
    WORKING_DIRECTORY ${web_build}
    COMMENT "Bundling the board's page"
    VERBATIM)
  add_custom_target(page DEPENDS ${page_paths})
  foreach(file type IN ZIP_LISTS page_files page_types)
    list(LENGTH entries i)
    list(APPEND entries "tahl_page_${i}|\"/${file}\", \"${type}\"|${web_build}/page/${file}")
  endforeach()
endif()
tahl_embed(tahl_app ${PROJECT_BINARY_DIR}/embedded/page [=[
#include <vector>

#include "app/page.h"

@DECLARATIONS@
namespace tahl::app {
std::span<const PageFile> page_files() {
  static const std::vector<PageFile> files = {
@FILES@  };
  return files;
}
}  // namespace tahl::app
]=] ${entries})
if(TARGET page AND TARGET tahl_app_bytes)
  add_dependencies(tahl_app_bytes page)
endif()
