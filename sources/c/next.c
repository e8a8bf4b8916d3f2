/* The dynamic linker's list of libraries, and their tables of symbols.
 *
 * Before its constructor, our library may not call dlsym(3), which allocates: the caller may be another
 * preloaded library, an allocator that takes its first lock. */
#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#pragma weak dlsym
#pragma weak dlvsym
#pragma weak dlerror
#pragma weak _r_debug

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The symbols that a library exports. */
typedef struct exports {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hashes; /* of DT_GNU_HASH */
    const uint16_t *versions;
} exports;

/* An address from a library's table. Some linkers have added the library's own address, others have not. */
static const void *reached(const struct link_map *library, ElfW(Addr) there) {
    return (const void *)(there < library->l_addr ? there + library->l_addr : there);
}

static exports exports_of(const struct link_map *library) {
    exports found = {0};
    for (const ElfW(Dyn) *entry = library->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *there = reached(library, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            found.symbols = there;
        else if (entry->d_tag == DT_STRTAB)
            found.names = there;
        else if (entry->d_tag == DT_GNU_HASH)
            found.hashes = there;
        else if (entry->d_tag == DT_VERSYM)
            found.versions = there;
    }
    return found;
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Versions with this bit are only for older programs. */
#define PPT_OLD 0x8000

/* A library's function: the one that new programs get, or else an older one. */
static void *function_of(const struct link_map *library, const char *name, uint32_t hash) {
    exports in = exports_of(library);
    if (!in.symbols || !in.names || !in.hashes)
        return NULL;
    uint32_t count = in.hashes[0], first = in.hashes[1], words = in.hashes[2];
    const uint32_t *buckets = in.hashes + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + count;
    uint32_t at = count ? buckets[hash % count] : 0;
    void *old = NULL;
    if (at < first)
        return NULL;
    for (;; at++) {
        uint32_t there = chain[at - first];
        const ElfW(Sym) *symbol = in.symbols + at;
        if ((there | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            (symbol->st_info & 15) == STT_FUNC && strcmp(in.names + symbol->st_name, name) == 0) {
            void *found = (void *)(library->l_addr + symbol->st_value);
            if (!in.versions || !(in.versions[at] & PPT_OLD))
                return found;
            old = found;
        }
        if (there & 1)
            return old;
    }
}

void *ppt_next(const char *name) {
    if (!&_r_debug) /* musl, whose dlsym neither allocates nor waits for constructors */
        return ppt_next_by_linker(name, NULL);
    uint32_t hash = hash_of(name);
    const struct link_map *library = _r_debug.r_map;
    while (library && library->l_ld != _DYNAMIC)
        library = library->l_next;
    while (library && (library = library->l_next)) {
        void *found = function_of(library, name, hash);
        if (found)
            return found;
    }
    return NULL;
}

/* The results are used: were a call the last act of this function, the compiler would jump to dlsym,
 * which then takes our caller for the library that asks for the next function. */
void *ppt_next_by_linker(const char *name, const char *version) {
    void *found = NULL;
    if (!dlsym)
        return &_r_debug ? ppt_next(name) : NULL;
    if (version && dlvsym)
        found = dlvsym(RTLD_NEXT, name, version);
    if (!found)
        found = dlsym(RTLD_NEXT, name);
    /* Clears the error, which is not the program's. */
    if (!found && dlerror)
        dlerror();
    return found;
}
