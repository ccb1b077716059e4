# Writes OUTPUT, a header that defines KILN_COMMIT: the commit of the sources in SOURCE, with "-dirty"
# where they differ from it; empty when git does not say. Untouched when it would be the same:
#   cmake -DOUTPUT=... -DSOURCE=... -P commit.cmake
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude *
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  set(commit "")
endif()
set(text "// Made by commit.cmake.\n#pragma once\n\n#define KILN_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${OUTPUT} "${text}")
endif()
