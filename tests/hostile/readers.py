"""The table of readers: every function that takes text or bytes from outside, how it is called, and whole inputs.

Outside is whatever mccprobe did not write in the same moment: files of users, objects, output of compilers and
programs, and our own run directories, which travel by mail and break off when a machine dies. A reader is called as
its command calls it, with what is done to the record next: a record that the next step cannot take is a fault too.

`test_table.py` fails when a function of the package that reads is in no row here and in no row of NOT_READERS.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from . import objects, outputs, runs, travels
from .reader import Call, Reader, files, jsons, listings


def rows() -> tuple[Reader, ...]:
    from mccprobe.oracle.kernel.expression import ExpressionError

    def row(name: str, kind: str, reads: str, call: Call, seeds: Callable[[], list[bytes]], **more: Any) -> Reader:
        return Reader(name, kind, tuple(reads.split()), call, seeds, **more)

    binary = (
        "objects.binary.read.read_images objects.binary.read.read_kernels objects.binary.read.read_notes "
        "objects.binary.elf.parse_elf "
        "objects.binary.elf.read_code_symbols"
    )
    return (
        row("elf", "binary", binary, objects.read_object, objects.shape("elf", "amd-elf", "host")),
        row(
            "notes",
            "binary",
            "objects.binary.notes.read_elf_notes objects.binary.describe.decode_note",
            objects.read_object,
            objects.shape("notes", "amd-elf"),
        ),
        row(
            "bundle",
            "binary",
            "objects.binary.bundle.parse_bundle objects.binary.bundle.parse_text_bundle",
            objects.read_object,
            objects.shape("bundle", "text-bundle"),
        ),
        row(
            "compressed",
            "binary",
            "objects.binary.compressed.expand",
            objects.read_object,
            objects.shape("zlib", "zstd", "zstd3"),
        ),
        row("archive", "binary", "objects.binary.archive.iter_members", objects.read_object, objects.shape("archive")),
        row(
            "messagepack",
            "binary",
            "objects.binary.document.read_messagepack objects.binary.metadata.read_document",
            objects.read_messages,
            objects.shape("messagepack", "amd-messagepack"),
        ),
        row("yaml", "text", "objects.binary.document.read_yaml", objects.read_yaml_text, objects.yaml_seeds),
        row(
            "assembly",
            "text",
            "objects.binary.assembly.read_metadata_texts objects.binary.assembly.read_descriptors",
            objects.read_object,
            objects.shape("assembly"),
        ),
        row(
            "listing-asm",
            "text",
            "objects.isa.listing.parse_listing objects.isa.listing_asm.parse_assembly objects.isa.disassemble.load "
            "objects.isa.registers.split_operands",
            objects.read_listing_text,
            listings("tests/isa/data/*mp22.s"),
        ),
        row(
            "listing-objdump",
            "text",
            "objects.isa.listing_objdump.parse_objdump",
            objects.read_listing_text,
            lambda: [*listings("tests/isa/data/objdump*.txt")(), *objects.objdump_seeds()],
        ),
        row(
            "listing-nvdisasm",
            "text",
            "objects.isa.listing_nvdisasm.parse_nvdisasm",
            objects.read_listing_text,
            listings("tests/isa/data/nvdisasm.txt", "tests/isa_learn/data/sass/*.txt"),
        ),
        row(
            "learn",
            "text",
            "objects.isa.learn_files.read_listing objects.isa.operands.parse_operand",
            objects.learn_from,
            listings("tests/isa_learn/data/sass/a*.txt", "tests/isa/data/objdump*.txt"),
        ),
        row(
            "operands",
            "text",
            "objects.isa.operands.parse_operand",
            objects.read_operands,
            lambda: [
                b"v1, s[2:3], 0x10 offset:16",
                b"`(.L_x_1), [R2+0x10], c[0x0][0x160], -R4.reuse",
                b"(%rax,%rbx,4), $5",
            ],
        ),
        row(
            "table",
            "json",
            "objects.isa.table_file.read_table objects.isa.by_table.table_at",
            objects.read_table_file,
            lambda: [objects.table_bytes()],
        ),
        row(
            "decode",
            "binary",
            "objects.isa.decode_file.decode_file objects.isa.stream.Decoder",
            objects.decode_with_table,
            objects.shape("elf", "amd-elf"),
        ),
        row(
            "journal",
            "json",
            "build.journal.Journal targets.llvm.opt_bisect.LogSummary.from_dict",
            runs.read_journal,
            lambda: [runs.TRIAL_LINES],
        ),
        row("book", "json", "journal.book.Book.read journal.entry.read_entry", runs.read_book, runs.book_seed),
        row(
            "run-json",
            "json",
            "bisection.passes.options.read_run_options bisection.passes.options.BisectOptions.from_dict "
            "explain.options.read_why_options tuning.flag_search.options.read_options cli.run_session.run_document",
            runs.read_run_json,
            runs.run_seed,
        ),
        row("finished-run", "json", "explain.bundle.run.open_run", runs.read_finished, runs.finished_seeds),
        row(
            "search-trials", "json", "tuning.flag_search.trials.read_trials", runs.read_search_trials, runs.search_seed
        ),
        row(
            "kernel-toml",
            "text",
            "oracle.kernel.spec.load_kernel targets.flags.datafile.read_toml targets.flags.datafile.parse_toml",
            runs.read_kernel,
            runs.kernel_seeds,
        ),
        row("recipe", "text", "bisection.passes.options.read_recipe", runs.read_recipe_file, files("bisect/*.toml")),
        row(
            "space",
            "text",
            "tuning.flag_search.space.load_space",
            runs.read_space,
            files("mccprobe/targets/*/data/search.toml"),
        ),
        row(
            "catalogue",
            "text",
            "targets.flags.catalogue.load_catalogue targets.flags.entries.read_flag "
            "targets.flags.entries.read_flag_set",
            runs.read_catalogue,
            runs.flag_seeds,
        ),
        row("set-file", "text", "build.wrapper.flagset.wrapper_sets", runs.read_set, lambda: [runs.SET_SEED]),
        row(
            "expression",
            "text",
            "oracle.kernel.expression.Expression oracle.kernel.records.parse_shape",
            runs.read_expression,
            lambda: [b"0.01*sqrt(K/512)", b"M % 256 == 0 && N % 256 == 0 || min(M, 3) <= K", b"1024x1024x512"],
            allowed=(ExpressionError,),
        ),
        row(
            "arguments",
            "text",
            "targets.llvm.command.split_response_text targets.llvm.command.split_arguments",
            runs.read_arguments,
            lambda: [
                b'-O2 -mllvm -x=1 -Xclang -mllvm -Xclang -y -I \'a b\' "c\\"d" a.c -o x -lm -x c++ -Xarch_mp_22 -z\n'
            ],
        ),
        row(
            "flag-text",
            "text",
            "tuning.check.subject.split_flags explain.options.parse_budget",
            runs.read_flag_text,
            lambda: [b"gemm-s4000 -mllvm -x '-O2'", b"1.5h", b"internal-regs-ra=24 none"],
        ),
        row("driver-jobs", "text", "targets.llvm.jobs.parse_jobs", outputs.read_jobs, lambda: [outputs.JOBS]),
        row(
            "help",
            "text",
            "targets.flags.harvest.read_help targets.flags.harvest.harvest",
            outputs.read_help_text,
            lambda: [outputs.HELP + outputs.PRINTED, outputs.HELP],
        ),
        row("bisect-log", "text", "targets.llvm.opt_bisect.parse_line", outputs.read_bisect_log, outputs.log_seeds),
        row("ir", "text", "explain.locate.ir_text.readable_lines", outputs.read_ir, lambda: [outputs.IR]),
        row(
            "mir",
            "text",
            "explain.locate.mir_text.parse_mir explain.locate.mir_text.readable",
            outputs.read_mir,
            outputs.mir_seeds,
        ),
        row("verifier", "text", "explain.locate.verifier._Reader", outputs.read_verifier, lambda: [outputs.VERIFIER]),
        row(
            "pipeline",
            "text",
            "explain.locate.ir_pipeline.single_pass_texts",
            outputs.read_pipeline,
            lambda: [outputs.PIPELINE],
        ),
        row(
            "ptxas",
            "text",
            "targets.nvidia.ptxas.parse_ptxas targets.nvidia.ptxas.parse_usage",
            outputs.read_ptxas,
            outputs.ptxas_seeds,
        ),
        row(
            "host-answer",
            "json",
            "tuning.check.answer.read_answer oracle.checks.json_document",
            outputs.read_host_answer,
            lambda: [status + b"\n" + json.dumps(outputs.HOST).encode() for status in (b"0", b"1", b"125")],
        ),
        row("lab", "json", "tuning.lab.record.read_observation", outputs.read_lab, jsons(outputs.LAB)),
        row("trace", "json", "tuning.trace.read.read_record", outputs.read_trace, outputs.trace_seeds),
        row("report-archive", "binary", "explain.bundle.archive.unpack", travels.read_archive, travels.tar_seeds),
        row(
            "report-bundle",
            "json",
            "explain.bundle.recheck.read_report",
            travels.read_bundle_json,
            lambda: [travels.bundle_document()],
        ),
        row("patch", "text", "tuning.overlay.change.parse_patch", travels.read_patch, lambda: [travels.PATCH]),
        row(
            "wrapper",
            "text",
            "build.wrapper.script.read_stamp build.wrapper.install.read_installed",
            travels.read_wrapper,
            travels.wrapper_seeds,
        ),
        row(
            "probe-cache",
            "json",
            "targets.llvm.findings.from_document targets.llvm.findings.ProbeCache.load",
            travels.read_probe_cache,
            jsons(travels.FINDINGS),
        ),
        row(
            "edit-folder",
            "binary",
            "tuning.cycle.versions.EditStore.load",
            travels.read_edit_folder,
            travels.tar_seeds,
        ),
        row(
            "depends",
            "text",
            "build.travel.dependency_names",
            travels.read_depends,
            lambda: [b"a.o: a.c \\\n  b\\ c.h $$d.h\n"],
        ),
        row(
            "report-text",
            "text",
            "report.fence.escaped report.scrub.Scrubber.text",
            travels.write_report_text,
            lambda: [
                b"see https://x.example/@y and /home/alice/secret `code` | <b> *x* alice on mt-node-17\n1. x\n```\n",
                outputs.IR,
            ],
        ),
    )


# Functions whose names say that they read, and why no row above is theirs.
NOT_READERS = {
    "cli.bisect_options.BuildCommand.parse_args": "click's own arguments",
    "objects.isa.mtgpu.table.parse_table": "data of the package",
    "targets.llvm.counter.Cc1Counter.parse_line": "targets.llvm.opt_bisect.parse_line",
    "targets.protocol.PassCounter.parse_line": "the protocol of it",
    "base.paths.read_file": "bytes of a file as they are; tests/unit/test_paths.py",
    "base.paths.read_text": "the same as text",
    "explain.reduce.interesting.read_task": "pickle of the same run, written a moment before by the same user",
    "targets.passes.table.load_pass_table": "data of the package",
    "report.bug_report_words.load_words": "data of the package",
    "tuning.cycle.versions.read_version": "copies files as they are",
    "tuning.check.subject.parse_defines": "a dictionary look-up of an option's text",
    "cli.flags_cmd.NamesCommand.parse_args": "click's own arguments",
    "cli.flags_cmd.harvest": "the command; what it reads is the row help",
    "doctor.subject.parse_text": "objects.isa.listing.parse_listing with another error",
    "tuning.flag_search.objectives.Clock.read": "runs a program; its answer is read by tuning.check.answer",
    "tuning.flag_search.objectives.read_in_turn": "the same, in turn",
    "tuning.flag_search.objectives.read_often": "the same, often",
}
