"""Appends entries to a journal until it is killed: `writer.py JOURNAL NAME COUNT TEXT_LENGTH`."""

import sys
from pathlib import Path

from mccprobe.journal.book import Book
from mccprobe.journal.entry import Entry

book, name, count, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for number in range(count):
    Book(book).append(Entry("trial", f"{name} {number} " + "x" * length))
    sys.stdout.write(f"{number}\n")  # after the append: what is told is in the journal
    sys.stdout.flush()
