/* Finds the functions that ours call. */
#ifndef PPT_NEXT_H
#define PPT_NEXT_H

/* Returns the function that ours by this name calls, or 0. This works at any time: before the constructors
 * have run, in programs without dlsym(3), and under any lock. It allocates nothing and takes no lock. */
void *ppt_next(const char *name);

/* The same by dlsym(3), where there is one, once the constructors run. `version` is the version for new
 * programs if the C library has an older function of this name, too; otherwise 0. */
void *ppt_next_by_linker(const char *name, const char *version);

#endif
