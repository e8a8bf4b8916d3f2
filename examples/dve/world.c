#include "world.h"

#include <math.h>
#include <string.h>

static const float REACTION = 4.0f;     // 1/s: how fast speed follows the wish
static const float ARM_LENGTH = 1.0f;   // metres: closer than this, avatars push each other away
static const float EYE_HEIGHT = 1.7f;   // metres above `at`
enum { SIGHT_SAMPLES = 32 };            // points of a line of sight that are tested

static float clamp(float v, float low, float high) { return fminf(fmaxf(v, low), high); }

static struct vec3 minus(struct vec3 a, struct vec3 b) {
    return (struct vec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static struct vec3 plus_scaled(struct vec3 a, struct vec3 b, float scale) {
    return (struct vec3){a.x + b.x * scale, a.y + b.y * scale, a.z + b.z * scale};
}

static float length(struct vec3 v) { return sqrtf(v.x * v.x + v.y * v.y + v.z * v.z); }

// Rolling hills between 4 and 12 metres.
static float ground(float x, float y) { return 8.0f + 4.0f * sinf(x * 0.06f) * cosf(y * 0.05f); }

// Every position passes through here: what is stored is inside the box and fits a cell.
static struct vec3 inside(struct vec3 at) {
    at.x = clamp(at.x, 0.0f, WORLD_SIZE - 0.01f);
    at.y = clamp(at.y, 0.0f, WORLD_SIZE - 0.01f);
    at.z = clamp(at.z, ground(at.x, at.y), WORLD_HEIGHT - 0.01f);
    return at;
}

static float random_below(struct world *world, float limit) {
    world->random = world->random * 1664525u + 1013904223u;
    return (float)(world->random >> 8) / (float)(1u << 24) * limit;
}

void world_enter(struct world *world, int user) {
    struct vec3 at = {random_below(world, WORLD_SIZE), random_below(world, WORLD_SIZE), 0.0f};
    world->users += !world->avatars[user].live;
    world->avatars[user] = (struct avatar){.live = true, .at = inside(at)};
}

void world_leave(struct world *world, int user) {
    world->users -= world->avatars[user].live;
    world->avatars[user].live = false;
}

void world_steer(struct world *world, int user, struct vec3 wanted) {
    float speed = length(wanted);
    float scale = speed > MAX_SPEED ? MAX_SPEED / speed : 1.0f; // nobody outruns the rules
    world->avatars[user].wanted = plus_scaled((struct vec3){0}, wanted, scale);
}

static void move(struct avatar *a, float seconds) {
    a->speed = plus_scaled(a->speed, minus(a->wanted, a->speed), fminf(REACTION * seconds, 1.0f));
    a->at = inside(plus_scaled(a->at, a->speed, seconds));
    a->company = 0;
}

static bool in_sight(const struct avatar *a, const struct avatar *b) {
    struct vec3 line = minus(b->at, a->at);
    for (int i = 1; i < SIGHT_SAMPLES; i++) {
        struct vec3 point = plus_scaled(a->at, line, (float)i / SIGHT_SAMPLES);
        if (point.z + EYE_HEIGHT < ground(point.x, point.y))
            return false;
    }
    return true;
}

static void interact(struct avatar *a, struct avatar *b) {
    struct vec3 away = minus(a->at, b->at);
    float distance = length(away);
    if (distance > 0.0f && distance < ARM_LENGTH) {
        float push = (ARM_LENGTH - distance) / distance / 2.0f;
        a->at = inside(plus_scaled(a->at, away, push));
        b->at = inside(plus_scaled(b->at, away, -push));
    }
    if (in_sight(a, b)) {
        a->company++;
        b->company++;
    }
}

static void fill_grid(struct world *world) {
    memset(world->first_in_cell, 0, sizeof world->first_in_cell);
    for (int user = MAX_USERS; user >= 1; user--) {
        struct avatar *a = &world->avatars[user];
        if (!a->live)
            continue;
        int *first = &world->first_in_cell[(int)a->at.z / CELL][(int)a->at.y / CELL][(int)a->at.x / CELL];
        a->next_in_cell = *first;
        *first = user;
    }
}

void world_step(struct world *world, float seconds) {
    struct avatar *avatars = world->avatars;
    world->steps++;
    for (int user = 1; user <= MAX_USERS; user++)
        if (avatars[user].live)
            move(&avatars[user], seconds);
    fill_grid(world);
    int pairs = 0;
    const int *cell = &world->first_in_cell[0][0][0];
    for (int i = 0; i < CELLS_X * CELLS_Y * CELLS_Z; i++)
        for (int a = cell[i]; a; a = avatars[a].next_in_cell)
            for (int b = avatars[a].next_in_cell; b; b = avatars[b].next_in_cell) {
                interact(&avatars[a], &avatars[b]);
                pairs++;
            }
    world->pairs = pairs;
}

int world_nearest(const struct world *world, int user, int *nearest, int limit) {
    float distances[STATE_AVATARS];
    struct vec3 me = world->avatars[user].at;
    int count = 0, cx = (int)me.x / CELL, cy = (int)me.y / CELL, cz = (int)me.z / CELL;
    if (limit > STATE_AVATARS)
        limit = STATE_AVATARS;
    if (limit < 1)
        return 0;
    for (int z = cz > 0 ? cz - 1 : 0; z <= cz + 1 && z < CELLS_Z; z++)
        for (int y = cy > 0 ? cy - 1 : 0; y <= cy + 1 && y < CELLS_Y; y++)
            for (int x = cx > 0 ? cx - 1 : 0; x <= cx + 1 && x < CELLS_X; x++)
                for (int other = world->first_in_cell[z][y][x]; other;
                     other = world->avatars[other].next_in_cell) {
                    float distance = length(minus(world->avatars[other].at, me));
                    if (other == user || (count == limit && distance >= distances[count - 1]))
                        continue;
                    // insert in order; a full list loses its farthest
                    int place = count < limit ? count++ : count - 1;
                    for (; place > 0 && distances[place - 1] > distance; place--) {
                        distances[place] = distances[place - 1];
                        nearest[place] = nearest[place - 1];
                    }
                    distances[place] = distance;
                    nearest[place] = other;
                }
    return count;
}
