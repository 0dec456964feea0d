import { overAtOnce, overBucket, overInAnyWindow, overPerWindow } from './bounds.mjs'
import { idealBucket, idealInAnyWindow, idealPerWindow } from './ideal.mjs'

/**
 * The kinds of limits that are measured: the words of the rule, how far the admitted calls went over it, and which of
 * all calls exact counting would have admitted, given when they came (left out: it would always be full). Calls
 * that hold a place are judged by their stay. `refundAfterMs`: every call ends well after so long, and does not count then.
 * `isRaised`: until a part of the time has passed, the limit is a tenth.
 */
export const kinds = {
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
  // the limit is raised to ten times what it was while all are at it
  'token-bucket, changed': {
    words: ({ burst }) => ({ algorithm: 'token-bucket', burst }),
    over: overBucket,
    ideal: idealBucket,
    isRaised: true,
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

function stay({ granted, ended }) {
  return { from: granted, to: ended }
}

/** The moment for which a call that waits was counted: its bucket is empty again after one more drip. */
function countedFor({ earliest, latest, resetUs, passed }, { count, periodUs }) {
  const waitUs = resetUs - Math.ceil(periodUs / count)
  return { earliest: earliest + waitUs, latest: latest + waitUs, passed }
}
