import { writeFileSync } from 'node:fs'
import { markdownTable, summaryOf } from './report.mjs'

/** Writes the page that shows what was measured. */
export function writePage(path, results, about) {
  writeFileSync(path, pageOf(results, about))
}

const pageOf = (results, about) => `# How exact a fleet counts

Real processes share one limit in one real Redis and offer it more than it admits, or a little less. Of every call it is
known when Redis judged it, by the clock of Redis itself, and all admitted calls are held against their limit.

${summaryOf(results, about).join('\n')}

${markdownTable(results)}

\`npm run accuracy\` measures this anew, \`npm run accuracy -- --write\` writes this page. It needs \`redis-server\` on the PATH
and takes a few minutes. \`--short\` is the part of it that runs with the tests.

## What the columns say

| column | |
|---|---|
| limit | for \`concurrency\`, calls under way at one time |
| processes | each with a limiter of its own. The first offers half of the calls, the second a quarter, and so on; the second one joins when two fifths of the time are over, and the first has its part until then |
| load | calls offered, as a multiple of the limit |
| spread | how each process offers its calls: \`even\`, at \`random\` (Poisson), or in \`tens\`, ten at one moment and random gaps |
| offered, admitted | calls in the steady time: of windows, whole periods but the first; of buckets, from when one has first been empty; of calls under way, after twice as long as they last |
| over | calls more than the limit, in the worst window or interval of the whole run. The mark is 0 |
| of limit | the share of the limit that was admitted in the steady time |
| used | the share of what there was room for when calls came. The mark is 98 % where the load is above 1 |

*Over* is, for \`fixed-window\`, the most calls in one window of the clock less the limit; for \`sliding-window\` and \`sliding-log\`,
the same for any interval of the period, wherever it begins; for buckets, the most calls in any interval t less burst +
rate · t; for \`concurrency\`, the most calls under way at any moment less the limit. Calls that wait are held against
the limit at the moments they were counted for, and each one that passed before its moment is one over.

*Used* differs from *of limit* where calls come too seldom to find every gap. A limit of 10/s whose places get free at ten moments
of a second is used in full only if a call comes at each of them; the calls of a random load do not. So what was
admitted is compared with what exact counting in one place would have admitted of the very same calls at the very same
moments, or with the limit, whichever is less. \`sliding-window\` is compared with a log of every call; it keeps segments instead,
always on the safe side, and calls that come in clumps can cost it a few percent of its limit.

Of some kinds more is asked. *Refunded*: every call ends well and does not count then, so none may be refused. *Raised* and *lowered*: the
limit was a tenth, or ten times as large, until 30 % of the time had passed; what is measured begins half a second after
that. *Cluster*: counted in a Cluster of three masters. *Refused elsewhere*: every other call is refused by a rule that another slot
counts; those calls must cost nothing, and do not appear in the table.

## How it is measured

Each command that Diana sends to Redis goes out between two \`TIME\` commands on the same connection, so a call was judged
between two moments of the server's clock, a fraction of a millisecond apart. Only what no choice of moments in between
can explain counts as over. The clocks of the processes tell two things only: whether calls were offered in time, and
whether a call that waited passed before its moment, and there by the bound that is best for the call.

A case fails when a call is over, when less than 98 % is used, when one call was counted without Redis, when one was judged at
a moment not known, or when the machine could not offer 97 % of the calls in time. Only in that last case is it tried again,
up to three times, and the table says so.

That the measuring can fail is tested too: \`--fault more\` lets the fleet count by a limit one higher than it is held to,
\`--fault less\` by one 5 % lower, and \`--fault apart\` lets every process count on its own.
`
