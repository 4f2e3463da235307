/* Targets of every kind in few lines: nested loops, a function named loop, a name with blanks and
   parentheses, two functions that call each other (one SCC). */
int sink(int *);

static int nest(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      sum += sink(&j);
  return sum;
}

int loop(int n) {
  int sum = 0;
  while (n-- > 0)
    sum += nest(n) * sink(&n);
  return sum;
}

int even(int n);
__attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) int even(int n) { return n == 0 ? sink(&n) : odd(n - 1) + sink(&n); }

int named(int n) __asm__("a name (with) parens");
int named(int n) { return n > 3 ? loop(n) + odd(n) : n; }
