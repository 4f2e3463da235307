enum { HIGH = 48, WIDE = 10 };
void settle(int (*level)[WIDE], int (*flow)[WIDE], int (*seen)[WIDE]);
