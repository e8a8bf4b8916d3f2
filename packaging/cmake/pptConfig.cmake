# find_package(ppt): the imported program ppt::pptc and the function ppt_generate.
#
# pptc is looked for in the installation that this file belongs to, then on PATH; -DPPTC=/path/to/pptc names
# another one.

get_filename_component(_ppt_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(PPTC pptc HINTS "${_ppt_prefix}/bin" DOC "The frame compiler pptc")
unset(_ppt_prefix)

if(NOT PPTC OR NOT EXISTS "${PPTC}" OR IS_DIRECTORY "${PPTC}")
    set(ppt_FOUND FALSE)
    if(PPTC)
        set(ppt_NOT_FOUND_MESSAGE "PPTC is ${PPTC}, and there is no such program")
    else()
        set(ppt_NOT_FOUND_MESSAGE
            "the frame compiler pptc is neither installed nor on PATH: install ppt, or name it by -DPPTC=/path/to/pptc")
    endif()
    return()
endif()

if(NOT TARGET ppt::pptc)
    add_executable(ppt::pptc IMPORTED GLOBAL)
    set_target_properties(ppt::pptc PROPERTIES IMPORTED_LOCATION "${PPTC}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/pptGenerate.cmake")
