import { kinds } from './kinds.mjs'

// kind, limit, processes, load (times the limit), spread, and for buckets the burst, for concurrency how long calls last
const table = `
fixed-window            10/s       1  0.9  even
fixed-window            10/s       3  2    random
fixed-window            50/250ms   5  1.1  even
fixed-window            100/s      9  3    random
fixed-window            500/s      3  1.5  tens
fixed-window            1000/s     5  2    random
fixed-window            2000/s     9  1.1  even
fixed-window            5000/s     3  1.5  even
fixed-window            10000/2s   5  1.1  random
sliding-window          10/s       1  1.1  even
sliding-window          10/500ms   9  3    random
sliding-window          20/100ms   3  2    even
sliding-window          100/s      5  0.9  random
sliding-window          300/s      3  1.1  even
sliding-window          200/s      9  1.5  random
sliding-window          500/500ms  3  2    random
sliding-window          1000/s     5  1.5  random
sliding-window          2000/s     5  1.5  tens
sliding-window          2000/s     1  3    even
sliding-window          3000/s     9  1.1  even
sliding-window          10000/2s   3  1.5  random
sliding-window          10000/s    5  0.9  even
sliding-log             10/s       3  1.5  even
sliding-log             10/100ms   9  2    random
sliding-log             50/s       1  3    random
sliding-log             100/s      5  1.1  even
sliding-log             300/500ms  3  2    tens
sliding-log             1000/s     9  1.1  random
sliding-log             1000/s     5  0.9  even
token-bucket            10/s       1  2    even    5
token-bucket            10/s       5  3    random  10
token-bucket            100/s      3  1.1  even    20
token-bucket            100/100ms  9  1.5  random  100
token-bucket            500/s      5  1.1  even    25
token-bucket            1000/s     1  0.9  random  100
token-bucket            3000/s     9  3    even    300
token-bucket            5000/s     5  1.5  random  500
token-bucket            10000/s    3  0.9  even    1000
token-bucket, refunded  100/s      3  2    even    100
token-bucket, refunded  300/s      5  1.5  random  300
token-bucket, refunded, Cluster  100/s  3  2  even  100
token-bucket, refunded, Cluster  300/s  5  1.5  random  300
token-bucket, refused elsewhere, Cluster  100/s  3  4  even  20
token-bucket, refused elsewhere, Cluster  60/s  5  4  random  20
sliding-log, refused elsewhere, Cluster  20/250ms  3  4  random
token-bucket, raised    100/s      3  2    even    10
token-bucket, raised    1000/s     5  1.5  random  50
leaky-bucket, raised    500/s      3  2    even    20
fixed-window, raised    100/250ms  3  2    even
sliding-window, raised  100/250ms  5  1.5  random
sliding-log, raised     100/250ms  3  2    random
token-bucket, lowered   100/s      3  2    even    10
fixed-window, lowered   100/250ms  5  1.5  random
sliding-window, lowered  100/250ms  3  2    even
sliding-log, lowered    50/250ms   3  2    even
leaky-bucket            10/s       3  3    even    0
leaky-bucket            50/s       1  1.1  even    5
leaky-bucket            100/s      9  1.5  random  20
leaky-bucket            500/s      5  2    tens    50
leaky-bucket            1000/s     3  1.1  random  50
leaky-bucket            4000/s     9  2    even    200
leaky-bucket, waiting   10/s       3  1.5  even    3
leaky-bucket, waiting   50/s       1  2    random  10
leaky-bucket, waiting   100/s      5  1.1  even    20
leaky-bucket, waiting   200/s      9  3    random  50
leaky-bucket, waiting   500/s      3  0.9  random  100
leaky-bucket, waiting   1000/s     5  1.5  tens    200
concurrency             10         1  0.9  even    100ms
concurrency             50         3  2    even    200ms
concurrency             100        9  1.5  even    250ms
concurrency             500        5  2    random  300ms
concurrency, waiting    10         3  3    random  250ms
concurrency, waiting    40         5  1.5  random  250ms
`

const short = `
fixed-window            20/250ms   3  2    random
sliding-window          5/50ms     3  2    even
token-bucket            100/s      3  2    random  10
token-bucket, refunded  50/s       3  2    even    50
concurrency             10         3  3    random  150ms
`

export const cases = parse(table, 3500)
export const shortCases = parse(short, 1200)

function parse(text, endMs) {
  const rows = text.trim().split('\n')
  return rows.map((row, i) => {
    const [kind, limit, processes, load, spread, extra] = row.split(/ {2,}/)
    const [, count, number, unit] = /^(\d+)(?:\/(\d*)(ms|s))?$/.exec(limit)
    const periodMs = unit && (number === '' ? 1 : Number(number)) * (unit === 's' ? 1000 : 1)
    const holdMs = extra?.endsWith('ms') ? Number.parseInt(extra, 10) : undefined
    return {
      kind,
      limit: {
        text: limit,
        count: Number(count),
        periodUs: (periodMs ?? holdMs) * 1000,
        burst: holdMs ? undefined : Number(extra),
      },
      processes: Number(processes),
      load: Number(load),
      spread,
      holdMs,
      endMs: kinds[kind].hasWindows ? Math.max(3, Math.ceil(endMs / periodMs)) * periodMs : endMs,
      seed: i + 1,
    }
  })
}
