// The chain of pointer-chase: a node takes 64 bytes, so that each is in a cache line of its own.
#pragma once

#ifndef CHASE_NODES
#define CHASE_NODES 4096
#endif

constexpr unsigned kNodes = CHASE_NODES, kNodeWords = 16;
