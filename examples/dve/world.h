// world.h: the scene: avatars that move through a 3-D box, see each other and keep apart.
//
// A step costs about N (everyone moves) plus the pairs that share a cell of the grid: when users
// gather, cells fill up and the cost grows with the square of the crowd. These are the paper's "hot
// spots": the world knows of none, they are where users choose to meet.
#ifndef DVE_WORLD_H
#define DVE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

enum {
    CELL = 16, // metres; also about how far an avatar sees
    CELLS_X = WORLD_SIZE / CELL,
    CELLS_Y = WORLD_SIZE / CELL,
    CELLS_Z = WORLD_HEIGHT / CELL,
};

struct vec3 {
    float x, y, z;
};

struct avatar {
    bool live;
    struct vec3 at, speed, wanted; // metres, metres a second
    int company; // avatars seen in the last step
    int next_in_cell; // user id, 0 at the end
};

// Start from all zeroes. Avatars are indexed by user id; index 0 is nobody.
struct world {
    uint32_t steps;
    uint32_t random;
    int users; // live avatars
    int pairs; // that shared a cell in the last step: so many times two avatars were compared
    struct avatar avatars[MAX_USERS + 1];
    int first_in_cell[CELLS_Z][CELLS_Y][CELLS_X];
};

void world_enter(struct world *world, int user); // at a place of the world's choice
void world_leave(struct world *world, int user);
void world_steer(struct world *world, int user, struct vec3 wanted);
void world_step(struct world *world, float seconds);

// The users in this and the adjoining cells, nearest first: returns how many (at most `limit`).
// Positions are those of the last step, so call it between a step and the next enter or leave.
int world_nearest(const struct world *world, int user, int *nearest, int limit);

#endif
