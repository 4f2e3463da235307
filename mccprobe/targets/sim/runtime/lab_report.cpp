// The laboratory's report: one JSON document in the file that MCCSIM_LAB names.
#include <stdio.h>
#include <stdlib.h>

#include "lab.h"
#include "trap.h"

namespace mccsim::lab {
namespace {

// Keeps commas and quotes; a nested value is written by the caller between key() and the next key().
class Json {
public:
  explicit Json(FILE *file) : file_(file) {}
  void open(char bracket) { separate(), fputc(bracket, file_), first_ = true; }
  void close(char bracket) { fputc(bracket, file_), first_ = false; }
  void key(const char *name) { text(name), fputs(": ", file_), first_ = true; }
  void text(const std::string &value) {
    separate();
    fputc('"', file_);
    for (unsigned char c : value)
      if (c == '"' || c == '\\')
        fprintf(file_, "\\%c", c);
      else if (c < 0x20)
        fprintf(file_, "\\u%04x", c);
      else
        fputc(c, file_);
    fputc('"', file_);
  }
  void number(uint64_t value) { separate(), fprintf(file_, "%llu", static_cast<unsigned long long>(value)); }
  void null() { separate(), fputs("null", file_); }
  void member(const char *name, const std::string &value) { key(name), text(value); }
  void member(const char *name, uint64_t value) { key(name), number(value); }
  void member(const char *name, uint3 v) { triple(name, v.x, v.y, v.z); }
  void member(const char *name, dim3 v) { triple(name, v.x, v.y, v.z); }

private:
  void triple(const char *name, unsigned x, unsigned y, unsigned z) {
    key(name), open('['), number(x), number(y), number(z), close(']');
  }
  void separate() {
    if (!first_)
      fputs(", ", file_);
    first_ = false;
  }
  FILE *file_;
  bool first_ = true;
};

void write_site(Json &json, const char *name, const Site *site) {
  json.key(name);
  if (!site)
    return json.null();
  json.open('{');
  json.member("file", site->file);
  json.member("line", site->line);
  json.member("column", site->column);
  json.member("function", site->function);
  json.member("outer_file", site->outer_file);
  json.member("outer_line", site->outer_line);
  json.close('}');
}

void write_kernel(Json &json, const KernelRecord &kernel) {
  json.open('{');
  json.member("name", kernel.name);
  json.member("launches", kernel.launches);
  json.member("blocks", kernel.blocks);
  json.member("grid", kernel.grid);
  json.member("block", kernel.threads);
  json.member("static_bytes", kernel.static_bytes);
  json.member("dynamic_bytes", kernel.dynamic_bytes);
  json.close('}');
}

const char *kernel_name(int number) { return number < 0 ? "" : record.kernels[number].name.c_str(); }

void write_finding(Json &json, const Finding &f) {
  json.open('{');
  json.member("kind", f.kind);
  json.member("severity", f.severity == Severity::error ? "error" : "doubt");
  json.member("kernel", kernel_name(f.kernel));
  json.member("block", f.block);
  json.key("warp");
  f.warp < 0 ? json.null() : json.number(f.warp);
  json.member("lanes", lane_list(f.lanes));
  json.member("count", f.count);
  json.member("text", f.text);
  write_site(json, "site", f.site);
  write_site(json, "other", f.other);
  json.key("groups"), json.open('[');
  for (const Group &group : f.groups) {
    json.open('{');
    json.member("lanes", group.lanes);
    json.member("what", group.what);
    write_site(json, "site", group.site);
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

void write_banks(Json &json, const State &state) {
  const Banks &b = state.banks;
  json.open('{');
  json.member("kernel", kernel_name(state.kernel));
  write_site(json, "site", state.site);
  json.member("access", state.site->bytes == 0 ? "wmma" : state.site->flags & kWrite ? "store" : "load");
  json.member("bytes", state.site->bytes);
  json.member("groups", b.groups);
  json.member("cycles", b.cycles);
  json.member("ideal", b.ideal);
  json.member("worst", b.worst);
  json.member("uncounted", b.uncounted);
  json.close('}');
}

}  // namespace

// "0-31,64-95"
std::string lane_list(const LaneSet &lanes) {
  std::string text;
  for (int l = 0; l < 128; l++) {
    if (!lanes.has(l))
      continue;
    int end = l;
    while (end < 127 && lanes.has(end + 1))
      end++;
    text += (text.empty() ? "" : ",") + std::to_string(l) + (end > l ? "-" + std::to_string(end) : "");
    l = end;
  }
  return text;
}

void write_report() {
  static bool written;
  const char *path = getenv("MCCSIM_LAB");
  if (written || !path)
    return;
  written = true;
  FILE *file = fopen(path, "w");
  if (!file) {
    say("cannot write the laboratory's report %s", path);
    return;
  }
  Json json(file);
  json.open('{');
  json.member("schema_version", 1);
  json.member("warp_lanes", static_cast<uint64_t>(block.warp_lanes));
  json.key("ended");
  record.ended.empty() ? json.null() : json.text(record.ended);
  json.key("kernels"), json.open('[');
  for (const KernelRecord &kernel : record.kernels)
    write_kernel(json, kernel);
  json.close(']');
  json.key("findings"), json.open('[');
  for (const Finding *finding : record.findings)
    write_finding(json, *finding);
  json.close(']');
  json.key("banks"), json.open('[');
  for (const State *state : record.states)
    if (state->banks.groups)
      write_banks(json, *state);
  json.close(']');
  json.close('}');
  fputc('\n', file);
  fclose(file);
}

}  // namespace mccsim::lab
