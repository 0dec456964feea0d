import { overAtOnce, overBucket, overInAnyWindow, overPerWindow } from './bounds.mjs'
import { idealBucket, idealInAnyWindow, idealPerWindow } from './ideal.mjs'

/**
 * The kinds of limits that are measured: the words of the rule, how far the admitted calls went over it, and which of
 * all calls exact counting would have admitted, given when they came (left out: it would always be full). Calls
 * that hold a place are judged by their stay. `refundAfterMs`: every call ends well after so long, and does not count then.
 * `timesBefore`: until a part of the time has passed, the limit is so many times as large. `isOnCluster`: counted in a Cluster of
 * three masters instead of one Redis. `isRefusedElsewhere`: every other call is refused by a rule in another slot of it.
 */
const plain = {
  'fixed-window': {
    hasWindows: true,
    words: () => ({ algorithm: 'fixed-window' }),
    over: overPerWindow,
    ideal: idealPerWindow,
  },
  'sliding-window': {
    hasWindows: true,
    words: () => ({ algorithm: 'sliding-window' }),
    over: overInAnyWindow,
    ideal: idealInAnyWindow,
  },
  'sliding-log': {
    hasWindows: true,
    words: () => ({ algorithm: 'sliding-log' }),
    over: overInAnyWindow,
    ideal: idealInAnyWindow,
  },
  'token-bucket': {
    words: ({ burst }) => ({ algorithm: 'token-bucket', burst }),
    over: overBucket,
    ideal: idealBucket,
  },
  // every call turns out not to count, so none may be refused as long as fewer are open than the bucket holds
  'token-bucket, refunded': {
    words: ({ burst }) => ({ algorithm: 'token-bucket', burst, countWhen: 'failed' }),
    over: () => 0,
    ideal: calls => calls.map(() => true),
    refundAfterMs: 20,
  },
  'leaky-bucket': {
    words: ({ burst }) => ({ algorithm: 'leaky-bucket', burst }),
    // the burst comes on top of the one under way
    over: (calls, limit) => overBucket(calls, { ...limit, burst: limit.burst + 1 }),
    ideal: (calls, limit) => idealBucket(calls, { ...limit, burst: limit.burst + 1 }),
  },
  'leaky-bucket, waiting': {
    words: ({ burst }) => ({ algorithm: 'leaky-bucket', burst, whenFull: 'wait' }),
    // counted for no moment that is too early, and passing no earlier than that
    over: (calls, limit) => {
      const counted = calls.map(call => countedFor(call, limit))
      return (
        overBucket(counted, { ...limit, burst: 1 }) + counted.filter(({ earliest, passed }) => passed < earliest).length
      )
    },
    ideal: (calls, limit) => idealBucket(calls, { ...limit, burst: 1, ahead: limit.burst }),
    countedFor,
  },
  concurrency: {
    words: () => ({ algorithm: 'concurrency' }),
    over: overAtOnce,
    // a place is free again after as long as a call lasts, as one in a window is after the period
    ideal: idealInAnyWindow,
    stay,
  },
  'concurrency, waiting': {
    words: ({ count }) => ({ algorithm: 'concurrency', whenFull: 'wait', queue: { size: count, timeout: '1s' } }),
    over: overAtOnce,
    stay,
  },
}

/** A kind whose limit is another one at first. */
const changed = (name, timesBefore) => ({ ...plain[name], timesBefore })

export const kinds = {
  ...plain,
  // the limit is raised to ten times what it was while all are at it
  'token-bucket, raised': changed('token-bucket', 1 / 10),
  'leaky-bucket, raised': changed('leaky-bucket', 1 / 10),
  'fixed-window, raised': changed('fixed-window', 1 / 10),
  'sliding-window, raised': changed('sliding-window', 1 / 10),
  'sliding-log, raised': changed('sliding-log', 1 / 10),
  // the limit is lowered to a tenth of what it was
  'token-bucket, lowered': changed('token-bucket', 10),
  'fixed-window, lowered': changed('fixed-window', 10),
  'sliding-window, lowered': changed('sliding-window', 10),
  'sliding-log, lowered': changed('sliding-log', 10),
  'token-bucket, refunded, Cluster': { ...plain['token-bucket, refunded'], isOnCluster: true },
  'token-bucket, refused elsewhere, Cluster': { ...plain['token-bucket'], isOnCluster: true, isRefusedElsewhere: true },
  'sliding-log, refused elsewhere, Cluster': { ...plain['sliding-log'], isOnCluster: true, isRefusedElsewhere: true },
}

function stay({ granted, ended }) {
  return { from: granted, to: ended }
}

/** The moment for which a call that waits was counted: its bucket is empty again after one more drip. */
function countedFor({ earliest, latest, resetUs, passed }, { count, periodUs }) {
  const waitUs = resetUs - Math.ceil(periodUs / count)
  return { earliest: earliest + waitUs, latest: latest + waitUs, passed }
}
