import { writeFileSync } from 'node:fs'
import { markdownTable, summaryOf } from './report.mjs'

/** Writes the page that shows what was measured. */
export function writePage(path, results, about) {
  writeFileSync(path, pageOf(results, about))
}

const pageOf = (results, about) => `# How exactly a fleet counts

Real processes share one limit in one real Redis and offer it more than it admits, or a little less. For every call the measurement
knows when Redis decided it, by the clock of Redis itself, and all admitted calls are compared with their limit.

${summaryOf(results, about).join('\n')}

${markdownTable(results)}

\`npm run long -- accuracy\` repeats the measurement, \`npm run long -- accuracy --write\` writes this page. It needs \`redis-server\` on the PATH
and takes a few minutes. \`--short\` is the part of it that runs with the tests.

## What the columns mean

| column | |
|---|---|
| limit | for \`concurrency\`, calls in flight at one time |
| processes | each with a limiter of its own. The first offers half of the calls, the second a quarter, and so on; the second one joins when two fifths of the time are over, and the first also offers the second one's share until then |
| load | calls offered, as a multiple of the limit |
| spread | how each process offers its calls: \`even\`, at \`random\` (Poisson), or in \`tens\`, ten at one moment and random gaps |
| offered, admitted | calls in the steady phase: for windows, whole periods except the first; for buckets, from when one has first been empty; for calls in flight, after twice as long as they last |
| over | calls more than the limit, in the worst window or interval of the whole run. The target is 0 |
| of limit | the share of the limit that was admitted in the steady phase |
| used | the share of the available room that was used when calls came. The target is 98 % if the load is above 1 |

*Over* is, for \`fixed-window\`, the most calls in one window of the clock minus the limit; for \`sliding-window\` and \`sliding-log\`,
the same for any interval of the period, wherever it begins; for buckets, the most calls in any interval t minus burst +
rate · t; for \`concurrency\`, the most calls in flight at any moment minus the limit. Calls that wait are compared with
the limit at the times they were counted for, and each one that passed before its time is one over.

*Used* differs from *of limit* if calls come too rarely to find every gap. A limit of 10/s whose capacity becomes free at ten moments
of a second is used in full only if a call comes at each of them; the calls of a random load do not. So what was
admitted is compared with what exact counting in one process would have admitted of the same calls at the same
moments, or with the limit, whichever is less. \`sliding-window\` is compared with a log of every call; it keeps segments instead,
always on the safe side, and calls that come in clusters can cost it a few percent of its limit.

Some kinds have further requirements. *Refunded*: every call succeeds and then does not count, so none may be refused. *Raised* and
*lowered*: the limit was a tenth, or ten times as large, until 30 % of the time had passed; the measurement begins half a second after
that. *Cluster*: counted in a Cluster of three masters. *Refused elsewhere*: every other call is refused by a rule that another slot
counts; those calls must cost nothing, and do not appear in the table.

## How it is measured

Each command that Diana sends to Redis is sent between two \`TIME\` commands on the same connection, so a call was decided
between two moments of the server's clock, a fraction of a millisecond apart. A call counts as over only if no choice of moments in
between can explain it. The clocks of the processes are used for two things only: whether calls were offered in time, and
whether a call that waited passed before its time, and there by the bound that is best for the call.

A case fails if a call is over, if less than 98 % is used, if a call was counted without Redis, if a call was decided at
an unknown time, or if the machine could not offer 97 % of the calls in time. Only in that last case is it tried again,
up to three times, and the table shows that.

The measurement itself is tested for failures too: \`--fault more\` lets the fleet count by a limit one higher than the one it is compared
with, \`--fault less\` by one 5 % lower, and \`--fault apart\` lets every process count on its own.
`
