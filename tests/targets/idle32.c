/* A 32-bit program, without a library: not every machine has one. It sleeps. */
__attribute__((force_align_arg_pointer)) void _start(void) {
    for (;;) {
        int result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(29)); /* pause(2) */
    }
}
