// measure.h: writes a frame of costs.frame for each step. Included by server.c in `make costs`.
#ifndef DVE_MEASURE_H
#define DVE_MEASURE_H

#include <linux/sock_diag.h> // SK_MEMINFO_…

#include "costs.h"

static int server_socket;
static struct world world;
static long packets_in, bytes_in, packets_out, bytes_out;

#define INPUT_ENDS() (WRITE_COSTS_INPUT_END_TIMESTAMP(), WRITE_COSTS_SIMULATION_START_TIMESTAMP())
#define SIMULATION_ENDS() (WRITE_COSTS_SIMULATION_END_TIMESTAMP(), WRITE_COSTS_OUTPUT_START_TIMESTAMP())
#define OUTPUT_ENDS() write_costs()

// Pages that no other process has, exactly: the kernel counts them when asked, which takes a while.
static long private_bytes(void) {
    long kilobytes = 0, value;
    char line[128];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %ld kB", &value) == 1)
            kilobytes = value;
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

static void write_costs(void) {
    static long packets[2], bytes[2]; // until the last step
    WRITE_COSTS_OUTPUT_END_TIMESTAMP();
    WRITE_COSTS_PERIOD_END_TIMESTAMP();
    if (ppt_costs_on()) {
        uint32_t memory[SK_MEMINFO_VARS] = {0};
        socklen_t length = sizeof memory;
        getsockopt(server_socket, SOL_SOCKET, SO_MEMINFO, memory, &length);
        WRITE_COSTS_QUEUED((int)memory[SK_MEMINFO_RMEM_ALLOC]);
        WRITE_COSTS_MEMORY(world.steps % 31 ? 0 : private_bytes());
    }
    WRITE_COSTS_USERS(world.users);
    WRITE_COSTS_PAIRS(world.pairs);
    WRITE_COSTS_PACKETS_IN((int)(packets_in - packets[0]));
    WRITE_COSTS_PACKETS_OUT((int)(packets_out - packets[1]));
    WRITE_COSTS_BYTES_IN((int)(bytes_in - bytes[0]));
    WRITE_COSTS_BYTES_OUT((int)(bytes_out - bytes[1]));
    packets[0] = packets_in, packets[1] = packets_out;
    bytes[0] = bytes_in, bytes[1] = bytes_out;
    ppt_write_costs_frame();
    // What comes now belongs to the next step.
    WRITE_COSTS_PERIOD_START_TIMESTAMP();
    WRITE_COSTS_INPUT_START_TIMESTAMP();
}

#endif
