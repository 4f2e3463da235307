// The way out when a program is invalid or not supported. Exit code 125 means "cannot tell", as in
// git bisect: nothing is known about the numbers that the program would have produced.
#pragma once

namespace mccsim {

constexpr int kExitCannotTell = 125;

// Prints "mccprobe-sim: TRAP <kind>: <message>" and ends the process without running destructors.
[[noreturn]] void trap(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prints "mccprobe-sim: <message>".
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace mccsim
