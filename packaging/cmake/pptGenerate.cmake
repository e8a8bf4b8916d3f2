# ppt_generate(TARGET app FRAMES a.frame [b.frame ...] [LANGUAGE C|CXX])
#
# Compiles frame files with pptc at build time and adds the result to a target: `a.c` to its
# sources, the folder of `a.h` to its include folders (`a.cpp` and `a.hpp` with LANGUAGE CXX). The
# target may be an executable or any library. LANGUAGE is C unless the project has only C++.
#
# pptc runs again when the frame file or pptc itself changes. Its output differs only if the meaning does,
# and only changed output is compiled again. Each target has a folder of its own, so several
# may use one frame file: equal buffers merge when they meet in a program.

function(ppt_generate)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;LANGUAGE" "FRAMES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "ppt_generate: what is `${arg_UNPARSED_ARGUMENTS}`? It takes "
            "TARGET <target> FRAMES <file.frame>... [LANGUAGE C|CXX]")
    endif()
    if(NOT arg_TARGET OR NOT arg_FRAMES)
        message(FATAL_ERROR "ppt_generate: TARGET and FRAMES are needed, as in "
            "ppt_generate(TARGET app FRAMES app.frame)")
    endif()
    if(NOT TARGET ${arg_TARGET})
        message(FATAL_ERROR "ppt_generate: there is no target `${arg_TARGET}`; call it after "
            "add_executable or add_library")
    endif()

    get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT arg_LANGUAGE)
        set(arg_LANGUAGE C)
        if(NOT "C" IN_LIST enabled)
            set(arg_LANGUAGE CXX)
        endif()
    endif()
    if(arg_LANGUAGE STREQUAL "C")
        set(emit c)
        set(suffixes h c)
        set(standard c_std_11)
    elseif(arg_LANGUAGE STREQUAL "CXX")
        set(emit cpp)
        set(suffixes hpp cpp)
        set(standard cxx_std_17)
    else()
        message(FATAL_ERROR "ppt_generate: LANGUAGE is C or CXX, not `${arg_LANGUAGE}`")
    endif()
    if(NOT arg_LANGUAGE IN_LIST enabled)
        message(FATAL_ERROR "ppt_generate: LANGUAGE is ${arg_LANGUAGE}, which the project has not "
            "enabled: project(... LANGUAGES ${arg_LANGUAGE})")
    endif()

    set(folder "${CMAKE_CURRENT_BINARY_DIR}/ppt/${arg_TARGET}")
    file(MAKE_DIRECTORY "${folder}")
    foreach(frame IN LISTS arg_FRAMES)
        get_filename_component(frame "${frame}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
        get_filename_component(stem "${frame}" NAME_WLE)
        # A frame file may itself be made by the build.
        get_source_file_property(generated "${frame}" GENERATED)
        if(NOT generated AND NOT EXISTS "${frame}")
            message(FATAL_ERROR "ppt_generate: there is no frame file ${frame}")
        endif()
        get_target_property(stems ${arg_TARGET} PPT_STEMS)
        if(stems AND "${stem}.${emit}" IN_LIST stems)
            message(FATAL_ERROR "ppt_generate: ${arg_TARGET} has two frame files called ${stem}; "
                "their output would have one name")
        endif()
        set_property(TARGET ${arg_TARGET} APPEND PROPERTY PPT_STEMS "${stem}.${emit}")

        set(made)
        foreach(suffix IN LISTS suffixes)
            list(APPEND made "${folder}/${stem}.${suffix}")
        endforeach()
        # pptc does not touch unchanged files, but writes the rule for make(1) every time: the time of
        # that file is the time of the last run.
        set(ran "${folder}/${stem}.${emit}.d")
        add_custom_command(
            OUTPUT "${ran}"
            BYPRODUCTS ${made}
            COMMAND ppt::pptc --emit ${emit} -o "${folder}" --depfile "${ran}" "${frame}"
            DEPENDS "${frame}" ppt::pptc "$<TARGET_FILE:ppt::pptc>"
            COMMENT "Compiling ${stem}.frame for ${arg_TARGET}"
            VERBATIM)
        set_source_files_properties(${made} PROPERTIES GENERATED TRUE)
        target_sources(${arg_TARGET} PRIVATE "${ran}" ${made})
    endforeach()
    # PUBLIC: a library's header may include a generated one.
    target_include_directories(${arg_TARGET} PUBLIC "$<BUILD_INTERFACE:${folder}>")
    target_compile_features(${arg_TARGET} PUBLIC ${standard})
endfunction()
