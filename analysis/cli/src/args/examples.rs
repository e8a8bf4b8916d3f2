//! Additions to the help: examples, and a note on what may stand among the captures.

pub(super) const STAT: &str = "\
Examples:
  ppt stat out.bin
  ppt stat out.bin --frame request --by verb --where \"bytes > 4KiB\"
  ppt stat out.bin --frame request_spans --hist dur";

pub(super) const WHY: &str = "\
Examples:
  sudo ppt attach PID --kernel sched,syscalls,faults -d 10s
  ppt why out.bin --summary
  ppt why out.bin --frame request --slowest 3";

pub(super) const WHY_CAPTURES: &str = "\
Captures with frames of the kernel (`ppt attach PID --kernel sched,syscalls`): files, patterns ('run*/*.bin'), names of rotated ones; `-` is stdin";

pub(super) const WHAT_IF: &str = "\
Examples:
  ppt whatif out.bin --speed work=2x --metric 'path(asked, got)'
  ppt whatif --live PID --speed work=0.5x      slows a running program down: ppt whatif --live --help";

pub(super) const SQL: &str = "\
Examples:
  ppt sql out.bin 'SELECT kind, count(*) FROM job GROUP BY kind'
  ppt sql out.bin                    a prompt, at which \\d lists the tables";

pub(super) const SQL_CAPTURES: &str = "\
Captures, and one query: the argument with white space in it. Without a query: a prompt";

pub(super) const EXPORT: &str = "\
Examples:
  ppt export out.bin --format perfetto -o out.pftrace
  ppt export out.bin --format otlp-json -o out.jsonl
  ppt export out.bin --format csv --frame request_spans -o requests.csv
  ppt export out.bin --follow --format parquet -o frames";

pub(super) const PLOT: &str = "\
Example:
  ppt plot out.bin 'SELECT ts, handle FROM job' -o job.svg";

pub(super) const PLOT_CAPTURES: &str = "\
Captures, and one SELECT: the argument with white space in it. A time, a number or a word comes first, \
and numbers after it; or one column of numbers, for a histogram";

pub(super) const FIT: &str = "\
Example:
  ppt fit 'runs/*.bin' 'busy ~ 1 + n + n^2' --sql 'SELECT capture, n, busy FROM load'";

pub(super) const FIT_CAPTURES: &str = "\
Captures, and one formula: the argument with `~` in it, such as 'busy ~ 1 + n + n^2'";
