/* Runs the crew, which with -DPLUGIN is loaded from the path that is given. */
#include <stdio.h>
#ifdef PLUGIN
#include <dlfcn.h>
#endif

unsigned long crew(void);

int main(int argc, char **argv) {
    unsigned long (*run)(void) = 0;
#ifdef PLUGIN
    void *plugin = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (plugin != 0)
        *(void **)&run = dlsym(plugin, "crew");
    if (run == 0) {
        puts(dlerror());
        return 1;
    }
#else
    (void)argc, (void)argv;
    run = crew;
#endif
    puts("ready");
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof line, stdin) != 0) {
        printf("written %lu\n", run());
        fflush(stdout);
    }
    return 0;
}
