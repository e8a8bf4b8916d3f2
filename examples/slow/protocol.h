// protocol.h: what the server and its clients send each other.
#ifndef PROTOCOL_H
#define PROTOCOL_H
#include <stdint.h>

enum { GET, PUT, KEYS = 1024 };

/// A request, and its answer.
struct message {
    uint64_t id; // each client counts from its number, in the upper half
    uint32_t operation, key, value;
};

#endif
